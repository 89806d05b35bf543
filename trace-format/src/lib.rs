//! The omptrace file: event table, chunks, codecs, writer, reader, diagnostics
