# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Omptrace(CargoPackage):
    """Records what an OpenMP program does, and shows where its parallel time goes.

    The tracer is a tool of the OpenMP tools interface (OMPT). Programs need not be changed or
    recompiled, those of GCC included."""

    homepage = "https://github.com/omptrace/omptrace"
    git = "https://github.com/omptrace/omptrace.git"

    license("Apache-2.0 OR MIT", checked_by="omptrace")

    version("main", branch="main")

    variant("libomp", default=True, description="LLVM's OpenMP runtime, for programs that bring none")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("llvm-openmp", type="run", when="+libomp")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        with working_dir(self.stage.source_path):
            # Program, libraries, man page and completions.
            cargo("xtask", "install", "--prefix", prefix)
