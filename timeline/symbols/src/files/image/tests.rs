use std::process::Command;

use super::*;

/// The places of addresses without known directives.
fn named(files: &Files, code: Code, offsets: &[u64]) -> (Vec<Place>, Checksums) {
    let offsets: Vec<_> = offsets.iter().map(|offset| (*offset, None)).collect();
    places(files, code, &offsets, Sources::older_than(0))
}

/// The region starts in line 5, and its first instruction belongs to an inlined function.
const SOURCE: &str = "static long sum;
static inline __attribute__((always_inline)) void helper(long x) { __sync_fetch_and_add(&sum, x); }

int region(void) {
#pragma omp parallel num_threads(2)
  helper(1);
  return 0; }
";

/// The library that `compiler` creates from the source. It is never run, so the runtime need not be found by the
/// linker.
fn compiled(compiler: &str, optimization: &str, source: &str) -> Files {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, library) = (folder.path().join("p.c"), folder.path().join("p.so"));
    std::fs::write(&file, source).expect("a writable folder");
    let done = Command::new(compiler)
        .args(["-g", optimization, "-fopenmp", "-fPIC"])
        .args(["-shared", "-nodefaultlibs", "-o"])
        .args([&library, &file])
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(done.status.success(), "{compiler}: {done:?}");
    Files { module: Some(std::fs::read(&library).expect("the library")), ..Files::default() }
}

/// Function and line of the region in the code that `compiler` creates.
fn region(compiler: &str, optimization: &str) -> (Option<String>, Option<u32>) {
    let files = compiled(compiler, optimization, SOURCE);
    let file = parse(&files.module).expect("an ELF file");
    let symbols = text_symbols(&file);
    let is_outlined = |name: &str| name == ".omp_outlined." || name.starts_with("region._omp_fn");
    let outlined = symbols.iter().find(|symbol| is_outlined(symbol.name));
    let start = outlined.expect("an outlined function").start;
    let place = named(&files, Code::OutlinedFunctions, &[start]).0.remove(0);
    (place.function, place.source.map(|(_, line)| line))
}

#[test]
fn each_region_of_gcc_is_at_its_directive() {
    const SOURCE: &str = include_str!("../../../../../tests/programs/gcc_region_lines.c");
    for optimization in ["-O0", "-O1", "-O2", "-O3"] {
        let files = compiled("gcc", optimization, SOURCE);
        let file = parse(&files.module).expect("an ELF file");
        let symbols = text_symbols(&file);
        let of_gcc = symbols.iter().filter(|symbol| is_of_gcc(symbol.name));
        let starts: Vec<u64> = of_gcc.map(|symbol| symbol.start).collect();
        let found = named(&files, Code::Calls, &starts).0.into_iter();
        let lines: BTreeSet<u32> = found.filter_map(|place| Some(place.source?.1)).collect();
        assert_eq!(lines, [17, 20, 23, 32].into(), "{optimization}");
    }
}

/// At the address that libgomp's adapter reports.
#[test]
fn a_function_that_gcc_made_of_a_region_is_at_its_directive() {
    for optimization in ["-O0", "-O1", "-O2", "-O3"] {
        let files = compiled("gcc", optimization, SOURCE);
        let file = parse(&files.module).expect("an ELF file");
        let symbols = text_symbols(&file);
        let outlined = symbols.iter().find(|symbol| is_of_gcc(symbol.name));
        let start = outlined.expect("an outlined function").start;
        let place = named(&files, Code::Calls, &[start]).0.remove(0);
        let line = place.source.map(|(_, line)| line);
        assert_eq!((place.function.as_deref(), line), (Some("region"), Some(5)), "{optimization}");
    }
}

/// As created by interprocedural and link-time optimization.
#[test]
fn clones_of_a_function_that_gcc_made_are_one_place() {
    const SOURCE: &str = "volatile long sum;
#define CLONE(number, name) void number(void *data) __asm__(name); \\
  __attribute__((noinline, noclone)) void number(void *data) { sum++; }
CLONE(one, \"solve._omp_fn.0\") CLONE(two, \"solve._omp_fn.0.constprop.0\") CLONE(three, \"solve._omp_fn.0.isra.1.lto_priv.2\")
";
    let files = compiled("gcc", "-O0", SOURCE);
    let file = parse(&files.module).expect("an ELF file");
    let symbols = text_symbols(&file);
    let clones = symbols.iter().filter(|symbol| is_of_gcc(symbol.name));
    let starts: Vec<u64> = clones.map(|symbol| symbol.start).collect();
    assert_eq!(starts.len(), 3);
    for place in named(&files, Code::Calls, &starts).0 {
        let line = place.source.map(|(_, line)| line);
        assert_eq!((place.function.as_deref(), line, place.is_near), (Some("solve"), Some(4), false));
    }
}

/// Clang gives line 0 to a call that it merged from two (DWARF 5, 6.2.2).
#[test]
fn a_call_without_a_line_has_none_of_a_caller() {
    const SOURCE: &str = "void __tgt_target_kernel(void);
static inline __attribute__((always_inline)) void kernel(void) {
#line 0
  __tgt_target_kernel();
#line 6
}
#line 1 \"caller.h\"
void caller(void) {
  kernel();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
";
    let files = compiled("clang-14", "-O1", SOURCE);
    let file = parse(&files.module).expect("an ELF file");
    let symbols = text_symbols(&file);
    let calls = Calls::of(&file);
    let caller = symbols.iter().find(|symbol| symbol.name == "caller").expect("a function");
    let jumps_or_calls: Vec<u64> = (caller.start..caller.end).collect();
    let launch = jumps_or_calls.iter().find(|offset| calls.launches_kernel(**offset + 1, &symbols));
    let place = named(&files, Code::Calls, &[*launch.expect("a call")]).0.remove(0);
    assert_eq!((place.function.as_deref(), place.source), (Some("kernel"), None));
    assert_eq!(place.callers.len(), 1);
}

/// For each loop in Clang's code, in the order of the calls: the line, and whether it is only near. `is_source_known`:
/// the source was not changed later.
fn loops_of_clang(compiler: &str, optimization: &str, is_source_known: bool) -> Vec<(u32, bool)> {
    const SOURCE: &str = "void work(int);
void separate(int n) {
#pragma omp parallel
  {
    work(0);
#pragma omp for schedule(dynamic, 3) \\
    nowait
    for (int i = 0; i < n; i++) work(i);
  }
}
void combined(int n) {
#pragma omp parallel for \\
    schedule(dynamic)
  for (int i = 0; i < n; i++) work(i);
}
void next(int n) {
#pragma omp parallel
#pragma omp for schedule(guided)
  for (int i = 0; i < n; i++) work(i);
}
";
    let folder = tempfile::tempdir().expect("a folder");
    let (file, library) = (folder.path().join("l.c"), folder.path().join("l.so"));
    std::fs::write(&file, SOURCE).expect("a writable folder");
    let done = Command::new(compiler)
        .args(["-g", optimization, "-fopenmp", "-fPIC", "-shared", "-nodefaultlibs", "-o"])
        .args([&library, &file])
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(done.status.success(), "{compiler}: {done:?}");
    let files = Files { module: Some(std::fs::read(&library).expect("the library")), ..Files::default() };
    let parsed = parse(&files.module).expect("an ELF file");
    let of_code = |symbol: &TextSymbol<'_>| symbol.name.contains("outlined");
    let code = text_symbols(&parsed).into_iter().filter(of_code).flat_map(|symbol| symbol.start..symbol.end);
    let offsets: Vec<_> = code.map(|offset| (offset, Some(Directive::Loop))).collect();
    let sources = Sources::older_than(if is_source_known { u64::MAX } else { 0 });
    let found = places(&files, Code::Calls, &offsets, sources).0.into_iter();
    found.filter_map(|place| Some((place.source?.1, place.is_near))).collect()
}

#[test]
fn a_loop_of_clang_is_at_its_directive() {
    for (compiler, optimization) in [("clang-14", "-O0"), ("clang-14", "-O2"), ("clang-22", "-O2")] {
        let known = loops_of_clang(compiler, optimization, true);
        for line in [6, 12, 18] {
            assert!(known.contains(&(line, false)), "{compiler} {optimization}: {line} of {known:?}");
        }
        assert!(!known.iter().any(|(line, _)| *line == 14), "{compiler} {optimization}: {known:?}");
    }
    let unknown = loops_of_clang("clang-22", "-O2", false);
    assert!(unknown.contains(&(14, true)) && unknown.contains(&(18, true)), "{unknown:?}");
}

#[test]
fn clang_leaves_checksums_of_sources() {
    let of = |compiler: &str| {
        let files = compiled(compiler, "-O1", SOURCE);
        let file = parse(&files.module).expect("an ELF file");
        let symbols = text_symbols(&file);
        let offsets: Vec<u64> = symbols.iter().map(|symbol| symbol.start).collect();
        let (places, checksums) = named(&files, Code::Calls, &offsets);
        let sources: BTreeSet<String> =
            places.into_iter().filter_map(|place| Some(place.source?.0)).collect();
        assert!(checksums.keys().all(|file| sources.contains(file)), "{checksums:?}");
        checksums.into_values().collect::<Vec<_>>()
    };
    // As computed by md5sum.
    assert_eq!(of("clang-22"), ["dbff15185ff7bd60f5f2fca635bbb834"]);
    assert!(of("gcc").is_empty());
}

#[test]
fn stripped_code_has_the_begin_of_its_function() {
    const SOURCE: &str = "volatile long sum;
static __attribute__((noinline)) void first(void) { sum++; }
static __attribute__((noinline)) void second(void) { first(); sum++; }
void both(void) { first(); second(); }
";
    let whole = compiled("gcc", "-O1", SOURCE);
    let file = parse(&whole.module).expect("an ELF file");
    let symbols = text_symbols(&file);
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("p.so");
    std::fs::write(&library, whole.module.as_ref().expect("bytes")).expect("a file");
    let done = Command::new("strip").arg("-s").arg(&library).status();
    assert!(done.is_ok_and(|status| status.success()));
    let stripped = Files { module: Some(std::fs::read(&library).expect("the library")), ..Files::default() };
    for name in ["first", "second"] {
        let symbol = symbols.iter().find(|symbol| symbol.name == name);
        let symbol = symbol.expect("a function");
        let offsets: Vec<u64> = (symbol.start..symbol.end).collect();
        for place in named(&stripped, Code::Calls, &offsets).0 {
            let known = (place.function.as_deref(), place.function_start);
            assert_eq!(known, (None, Some(symbol.start)), "{name}");
        }
    }
}

#[test]
fn the_vdso_has_names() {
    let files =
        Files { module: Some(crate::files::vdso::of_this_process().expect("a vDSO")), ..Files::default() };
    let file = parse(&files.module).expect("an ELF file");
    let symbols = text_symbols(&file);
    let symbol = symbols.iter().find(|symbol| symbol.name.ends_with("clock_gettime"));
    let start = symbol.expect("a clock").start;
    let place = named(&files, Code::Calls, &[start]).0.remove(0);
    let function = place.function.expect("a name");
    assert!(function.ends_with("clock_gettime"), "{function}");
}

#[test]
fn the_launch_of_a_kernel_without_a_line_has_that_of_its_construct() {
    /// Launches as in code from Clang 19: at line 0, between lines 4 and 6, and between lines 8 and 10.
    const SOURCE: &str = "volatile long sum;
void __tgt_target_kernel(void);
void region(void) {
  sum = 4;
#line 0
  __tgt_target_kernel();
#line 6
  sum = 6;

  sum = 8;
#line 0
  __tgt_target_kernel();
#line 10
  sum = 10;
}
";
    let kernel = |line: u32| format!("void __omp_offloading_1_2_region_l{line}(void) {{}}\n");
    let lines = |kernels: &[u32]| -> Vec<u32> {
        let kernels: String = kernels.iter().map(|line| kernel(*line)).collect();
        let files = compiled("clang-14", "-O1", &(SOURCE.to_owned() + &kernels));
        let file = parse(&files.module).expect("an ELF file");
        let symbols = text_symbols(&file);
        let calls = Calls::of(&file);
        let region = symbols.iter().find(|symbol| symbol.name == "region");
        let region = region.expect("a function");
        let offsets = region.start..region.end;
        let launches = offsets.filter(|offset| calls.launches_kernel(offset + 1, &symbols));
        let launches: Vec<u64> = launches.collect();
        assert_eq!(launches.len(), 2);
        let places = named(&files, Code::Calls, &launches).0.into_iter();
        places.filter_map(|place| Some(place.source?.1)).collect()
    };
    assert_eq!(lines(&[5, 9]), [5, 9]);
    // Both launches, because there is only one target construct.
    assert_eq!(lines(&[5]), [5, 5]);
    assert!(lines(&[]).is_empty());
    // Two of the constructs are where only one can be.
    assert_eq!(lines(&[5, 6, 9]), [9]);
}

#[test]
fn inlined_code_has_the_functions_that_it_is_inlined_into() {
    const SOURCE: &str = "volatile long sum;
static inline __attribute__((always_inline)) void inner(void) { sum++; }
static inline __attribute__((always_inline)) void outer(void) {
  inner(); }
void body(void) {
#pragma omp parallel
  outer(); }
";
    for compiler in ["gcc", "clang-14"] {
        let files = compiled(compiler, "-O2", SOURCE);
        let file = parse(&files.module).expect("an ELF file");
        let symbols = text_symbols(&file).into_iter();
        let offsets: Vec<u64> = symbols.flat_map(|symbol| symbol.start..symbol.end).collect();
        let (places, _) = named(&files, Code::Calls, &offsets);
        let mut of_inner =
            places.iter().filter(|place| place.function.as_deref() == Some("inner")).peekable();
        assert!(of_inner.peek().is_some(), "{compiler}");
        for place in of_inner {
            let lines = place.callers.iter().map(|caller| {
                let line = caller.source.as_ref().map(|(_, line)| *line);
                (caller.function.as_deref(), line)
            });
            // Clang inlines the region's function into another generated function; the programmer wrote only one.
            assert_eq!(
                lines.collect::<Vec<_>>(),
                [(Some("outer"), Some(4)), (Some("body"), Some(7))],
                "{compiler}"
            );
        }
    }
}

#[test]
fn outlined_functions_have_the_line_of_their_construct_or_none() {
    let of_region = Some("region".to_owned());
    for optimization in ["-O0", "-O1", "-O2"] {
        let (function, line) = region("clang-14", optimization);
        assert_eq!((function, line), (of_region.clone(), Some(5)), "{optimization}");
        let (function, line) = region("gcc", optimization);
        assert_eq!((function, line), (of_region.clone(), Some(5)), "{optimization}");
    }
}
