//! Prints the public API in the JSON of rustdoc that it is given: one item a line, without what is derived or automatic.

fn main() -> Result<(), public_api::Error> {
    let json = std::env::args().nth(1).expect("a file of rustdoc's JSON");
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    print!("{api}");
    Ok(())
}
