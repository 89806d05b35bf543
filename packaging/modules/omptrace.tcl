#%Module1.0
# A module file for Environment Modules; it lies in a folder `omptrace` of MODULEPATH. Set `prefix` to where omptrace is installed.
module-whatis "tracer for OpenMP programs"

proc ModulesHelp {} {
    puts stderr "Records what an OpenMP program does, and shows where its parallel time goes."
    puts stderr "    omptrace record ./app"
}

set prefix /opt/omptrace
if { [info exists env(OMPTRACE_PREFIX)] } {
    set prefix $env(OMPTRACE_PREFIX)
}

prepend-path PATH    $prefix/bin
prepend-path MANPATH $prefix/share/man
