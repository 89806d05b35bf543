//! Tests of the format through the public interface: what is written can be read, whatever happens to the file in
//! between.

mod build;
mod checkpoints;
mod damage;
mod document;
mod following;
mod reading;
mod round_trip;
mod sample;
mod samples;
mod sealing;
