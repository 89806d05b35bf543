//! The library: from traces written as text to exports, facts and findings.

mod contract;
mod facts;
mod faults;
mod fixture;
mod golden;
mod historic;
mod openuh;
mod stats;
