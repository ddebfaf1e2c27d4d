//! Functions of `xml`, and what the grammar writes with words of its own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::func::aggregate::{AggState, Step};
use crate::func::json::build::string_of;
use crate::func::number::int;
use crate::func::string::text;
use crate::func::table::{casts, functions};
use crate::func::{AggKind, Aggregate, Cast, CastContext, EvalContext, EvalResult, Function};
use crate::io::xml::{
    Declaration, Extent, check, datum, divided, escaped, extent_set, is_well_formed, mapped_name,
    text_of,
};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, oid, oid::*};

fn xml(text: &str) -> EvalResult {
    Ok(datum(text))
}

/// A value of SQL as content of an element; `xml` stays as it is.
fn mapped_value(ctx: &EvalContext<'_>, value: &Datum) -> String {
    match value {
        Datum::Base(base) if base.ty == oid::XML => text_of(value).to_owned(),
        Datum::Bytea(bytes) => match ctx.host.show_setting("xmlbinary").as_deref() {
            Some("hex") => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
            _ => STANDARD.encode(bytes),
        },
        Datum::Bool(value) => value.to_string(),
        _ => escaped(&string_of(ctx, value, value.natural_type())),
    }
}

/// A name as it is written in a definition, as one of XML.
fn name(value: &Datum) -> String {
    mapped_name(text(value))
}

fn names(value: &Datum) -> Vec<String> {
    match value {
        Datum::Array(array) => array.items.iter().map(name).collect(),
        _ => Vec::new(),
    }
}

/// An element: its name, the names of attributes, their values, and what is in it.
fn xmlelement(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (element, attributes) = (name(&args[0]), names(&args[1]));
    let (values, content) = args[2..].split_at(attributes.len().min(args.len() - 2));
    let mut out = format!("<{element}");
    for (attribute, value) in attributes.iter().zip(values) {
        if !value.is_null() {
            let value = mapped_value(ctx, value).replace('"', "&quot;");
            out += &format!(" {attribute}=\"{value}\"");
        }
    }
    let content = content.iter().filter(|value| !value.is_null());
    let content: Vec<String> = content.map(|value| mapped_value(ctx, value)).collect();
    match content.is_empty() {
        true => out += "/>",
        false => out += &format!(">{}</{element}>", content.concat()),
    }
    xml(&out)
}

/// An element for each value that is there; NULL where none is.
fn xmlforest(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut out = String::new();
    let mut any = false;
    for (name, value) in names(&args[0]).iter().zip(&args[1..]) {
        if !value.is_null() {
            out += &format!("<{name}>{}</{name}>", mapped_value(ctx, value));
            any = true;
        }
    }
    if any { xml(&out) } else { Ok(Datum::Null) }
}

/// One behind the other, under the declaration that all have.
fn concatenated<'v>(values: impl Iterator<Item = &'v Datum>) -> Option<String> {
    let mut whole: Option<(Declaration, String)> = None;
    let mut versions_differ = false;
    for value in values.filter(|value| !value.is_null()) {
        let (own, rest) = divided(text_of(value));
        let Some((declaration, text)) = &mut whole else {
            versions_differ = own.version.is_none();
            whole = Some((own, rest.to_owned()));
            continue;
        };
        versions_differ |= own.version.is_none() || own.version != declaration.version;
        declaration.standalone = match (declaration.standalone, own.standalone) {
            (Some(a), Some(b)) => Some(a && b),
            _ => None,
        };
        text.push_str(rest);
    }
    whole.map(|(mut declaration, text)| {
        if versions_differ {
            declaration.version = None;
        }
        let mut out = String::new();
        declaration.write(&mut out);
        out + &text
    })
}

fn xmlconcat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(concatenated(args.iter()).map_or(Datum::Null, |text| datum(&text)))
}

fn xmlagg_step(ctx: &EvalContext<'_>, state: &mut AggState, args: &[Datum]) -> Step {
    xmlagg_combine(ctx, state, AggState::Items(vec![args[0].clone()]))
}
fn xmlagg_combine(_: &EvalContext<'_>, state: &mut AggState, other: AggState) -> Step {
    if let AggState::Items(more) = other {
        match state {
            AggState::Items(items) => items.extend(more),
            _ => *state = AggState::Items(more),
        }
    }
    Ok(())
}
fn xmlagg_finish(ctx: &EvalContext<'_>, state: AggState) -> EvalResult {
    match state {
        AggState::Items(items) => xmlconcat(ctx, &items),
        _ => Ok(Datum::Null),
    }
}

fn extent(document: &Datum) -> Extent {
    match document.is_true() {
        true => Extent::Document,
        false => Extent::Content,
    }
}

/// Whether white space is kept changes nothing in the text.
fn xmlparse(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let given = text(&args[1]);
    check(given, extent(&args[0]))?;
    xml(given)
}

fn xmlserialize(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let given = text_of(&args[1]);
    if args[0].is_true() && !is_well_formed(given, Extent::Document)? {
        let message = "not an XML document";
        return Err(Error::new(state::NOT_AN_XML_DOCUMENT, message).into());
    }
    Ok(given.into())
}

fn is_document(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(is_well_formed(text_of(&args[0]), Extent::Document)?.into())
}

#[cold]
fn wrong_instruction(detail: &str) -> Error {
    let message = "invalid XML processing instruction";
    Error::new(state::INVALID_XML_PROCESSING_INSTRUCTION, message).detail(detail)
}

fn xmlpi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let target = text(&args[0]);
    if target.eq_ignore_ascii_case("xml") {
        let detail = format!("XML processing instruction target name cannot be \"{target}\".");
        return Err(wrong_instruction(&detail).into());
    }
    let target = mapped_name(target);
    match args.get(1) {
        None => xml(&format!("<?{target}?>")),
        Some(Datum::Null) => Ok(Datum::Null),
        Some(content) if text(content).contains("?>") => {
            let detail = "XML processing instruction cannot contain \"?>\".";
            Err(wrong_instruction(detail).into())
        }
        Some(content) => xml(&format!(
            "<?{target} {}?>",
            text(content).trim_start_matches(' ')
        )),
    }
}

/// What XMLROOT says of STANDALONE.
const STANDALONE: [Option<bool>; 3] = [Some(true), Some(false), None];

/// Another declaration; what is not said of it stays.
fn xmlroot(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (mut declaration, rest) = divided(text_of(&args[0]));
    declaration.version = args[1].as_str().map(str::to_owned);
    let said = usize::try_from(int(&args[2])).ok();
    if let Some(standalone) = said.and_then(|said| STANDALONE.get(said)) {
        declaration.standalone = *standalone;
    }
    let mut out = String::new();
    declaration.write(&mut out);
    xml(&(out + rest))
}
fn xmlroot_of(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    match args[0].is_null() {
        true => Ok(Datum::Null),
        false => xmlroot(ctx, args),
    }
}

fn xmlcomment(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let comment = text(&args[0]);
    if comment.contains("--") || comment.ends_with('-') {
        let message = "invalid XML comment";
        return Err(Error::new(state::INVALID_XML_COMMENT, message).into());
    }
    xml(&format!("<!--{comment}-->"))
}
fn xmltext(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let escaped = escaped(text(&args[0])).replace('"', "&quot;");
    xml(&escaped.replace("&#x0D;", "&#13;"))
}
fn texttoxml(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let given = text(&args[0]);
    check(given, extent_set(ctx))?;
    xml(given)
}
fn xmltotext(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(text_of(&args[0]).into())
}

fn well_formed(ctx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(is_well_formed(text(&args[0]), extent_set(ctx))?.into())
}
fn well_formed_document(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(is_well_formed(text(&args[0]), Extent::Document)?.into())
}
fn well_formed_content(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(is_well_formed(text(&args[0]), Extent::Content)?.into())
}

fn refused(what: &str) -> EvalResult {
    Err(Error::unsupported(what).into())
}
fn xpath(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    refused("xpath()")
}
fn xpath_exists(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    refused("xpath_exists()")
}
fn xmlvalidate(_: &EvalContext<'_>, _: &[Datum]) -> EvalResult {
    refused("xmlvalidate()")
}

functions! {
    2895 "xmlcomment" (TEXT) XML xmlcomment;
    2896 "xml" (TEXT) XML texttoxml, stable;
    2897 "xmlvalidate" (XML, TEXT) BOOL xmlvalidate;
    2900 "xmlconcat2" (XML, XML) XML xmlconcat, lenient;
    2922 "text" (XML) TEXT xmltotext;
    2931 "xpath" (TEXT, XML, TEXT_ARRAY) XML_ARRAY xpath;
    2932 "xpath" (TEXT, XML) XML_ARRAY xpath;
    3049 "xpath_exists" (TEXT, XML, TEXT_ARRAY) BOOL xpath_exists;
    3050 "xpath_exists" (TEXT, XML) BOOL xpath_exists;
    3051 "xml_is_well_formed" (TEXT) BOOL well_formed, stable;
    3052 "xml_is_well_formed_document" (TEXT) BOOL well_formed_document;
    3053 "xml_is_well_formed_content" (TEXT) BOOL well_formed_content;
    3813 "xmltext" (TEXT) XML xmltext;
}

casts! {
    XML TEXT assignment 0 binary;
    TEXT XML explicit 2896 texttoxml;
    XML VARCHAR assignment 0 binary;
    VARCHAR XML explicit 2896 texttoxml;
    XML BPCHAR assignment 0 binary;
    BPCHAR XML explicit 2896 texttoxml;
}

/// What the grammar calls; these have no rows in `pg_proc`.
pub const GRAMMAR: std::ops::Range<u32> = 9820..9829;

pub static CALLS: &[Function] = &[
    Function::new(
        9820,
        "xmlelement",
        &[TEXT, TEXT_ARRAY, ANY],
        XML,
        xmlelement,
    )
    .variadic(ANY)
    .lenient()
    .stable(),
    Function::new(9821, "xmlforest", &[TEXT_ARRAY, ANY], XML, xmlforest)
        .variadic(ANY)
        .lenient()
        .stable(),
    Function::new(9822, "xmlconcat", &[XML_ARRAY], XML, xmlconcat)
        .variadic(XML)
        .lenient(),
    Function::new(9823, "xmlparse", &[BOOL, TEXT], XML, xmlparse).stable(),
    Function::new(9824, "xmlpi", &[TEXT, TEXT], XML, xmlpi)
        .lenient()
        .defaults(1),
    Function::new(9825, "xmlroot", &[XML, TEXT, INT4], XML, xmlroot_of).lenient(),
    Function::new(9826, "xmlserialize", &[BOOL, XML], TEXT, xmlserialize),
    Function::new(9827, "is_document", &[XML], BOOL, is_document),
    // One that has nothing in it.
    Function::new(9828, "xmlelement", &[TEXT, TEXT_ARRAY], XML, xmlelement),
];

pub static AGGREGATES: &[Aggregate] = &[Aggregate {
    oid: Oid(2901),
    name: "xmlagg",
    args: &[XML],
    ret: XML,
    variadic: Oid::NONE,
    kind: AggKind::Plain,
    init: crate::func::aggregate::empty,
    step: xmlagg_step,
    combine: xmlagg_combine,
    undo: None,
    finish: xmlagg_finish,
}];
