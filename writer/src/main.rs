//! The `waybill` binary: its work is in the library.

fn main() -> std::process::ExitCode {
    waybill_writer::cli::main()
}
