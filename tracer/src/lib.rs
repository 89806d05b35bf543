//! libomptrace.so: the OMPT tool that records an OpenMP program
