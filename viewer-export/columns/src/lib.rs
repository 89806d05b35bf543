//! Traces as tables in Parquet files, for existing engines: DuckDB, Spark, Polars, pandas, DataFusion.
//!
//! ```text
//! process --> Columns (a Sink) --+-- slices, tasks, teams, locks, flows ...
//!                                +-- Accountant: work and waits, state by state; sums: accounting, blame, regions
//!                                        |
//!                                rows --> Table: columns of a row group --> DIR/table=T/run=R/process=P/part-0.parquet
//! ```
//!
//! Processes are independent: each has files of its own, so several machines can write parts of one data set. A large
//! process can be divided, too ([`splits`]). Only the Parquet library is used, without Arrow: rows are flat, and are
//! encoded column by column. `docs/columns.md` describes the tables; [`SCHEMA_VERSION`] is its version.
#![forbid(unsafe_code)]

mod annotations;
mod cells;
mod dataset;
mod events;
mod process;
mod samples;
mod schema;
mod share;
mod table;
mod tasks;
mod teams;

pub use cells::Kind;
pub use dataset::{Options, SCHEMA_FILE, check_run_name, export, run_name};
pub use schema::{Column, SCHEMA_VERSION, TABLES, TableSchema};
pub use share::{JobPart, splits};
