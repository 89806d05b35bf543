//! Tests of the format from outside: what is written comes back, whatever happens to the file in between.

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
