-- A module file for Lmod; it lies in a folder `omptrace` of MODULEPATH. Set `prefix` to where omptrace is installed.
help([[
Records what an OpenMP program does, and shows where its parallel time goes.
    omptrace record ./app
]])
whatis("Name: omptrace")
whatis("Description: tracer for OpenMP programs")
whatis("URL: https://github.com/omptrace/omptrace")

local prefix = os.getenv("OMPTRACE_PREFIX") or "/opt/omptrace"

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
