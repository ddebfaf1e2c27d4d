//! Unicode's normal forms, and which characters it has.

use throng_types::error::state;
use throng_types::oid::{BOOL, TEXT};
use throng_types::{Datum, Error, Result};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::func::string::text;
use crate::func::{EvalContext, EvalResult, Function};

fn normalized(args: &[Datum]) -> Result<String> {
    let source = text(&args[0]);
    let form = args.get(1).map_or("NFC", text);
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => source.nfc().collect(),
        "NFD" => source.nfd().collect(),
        "NFKC" => source.nfkc().collect(),
        "NFKD" => source.nfkd().collect(),
        _ => {
            let message = format!("invalid normalization form: {form}");
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
        }
    })
}

fn normalize(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(normalized(args)?.into())
}

fn is_normalized(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::Bool(normalized(args)? == text(&args[0])))
}

fn unicode_version(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    let (major, minor, _) = unicode_normalization::UNICODE_VERSION;
    Ok(format!("{major}.{minor}").into())
}

fn unicode_assigned(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let assigned = |c: char| c.general_category() != GeneralCategory::Unassigned;
    Ok(Datum::Bool(text(&args[0]).chars().all(assigned)))
}

pub static FUNCTIONS: &[Function] = &[
    Function::new(4350, "normalize", &[TEXT, TEXT], TEXT, normalize).defaults(1),
    Function::new(4351, "is_normalized", &[TEXT, TEXT], BOOL, is_normalized).defaults(1),
    Function::new(4549, "unicode_version", &[], TEXT, unicode_version),
    Function::new(6105, "unicode_assigned", &[TEXT], BOOL, unicode_assigned),
];
