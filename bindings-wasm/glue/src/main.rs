//! `fencelock-glue MODULE FOLDER`: what wasm-bindgen's own command line does for one target, without building all of it.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = &words[..] else {
        eprintln!("write: fencelock-glue MODULE FOLDER");
        return ExitCode::from(64);
    };
    // Building wasm-bindgen's command line takes longer than all else of this package.
    let mut glue = Bindgen::new();
    let made = glue
        .input_path(module)
        .out_name("core")
        .typescript(true)
        .web(true)
        .and_then(|glue| glue.generate(folder));
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
