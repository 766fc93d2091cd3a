//! The `tollgate` command: a table of contents. Everything is in [`cli`].

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
