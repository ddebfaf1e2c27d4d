//! What the arguments of built-in functions are called, and the defaults that a call by name may
//! need between them.
//!
//! As PostgreSQL's catalog has it, for those functions that anybody calls by name.

use throng_types::Oid;

struct Named {
    oid: u32,
    names: &'static [&'static str],
    /// Of the last ones, as text.
    defaults: &'static [&'static str],
}

const fn named(
    oid: u32,
    names: &'static [&'static str],
    defaults: &'static [&'static str],
) -> Named {
    Named {
        oid,
        names,
        defaults,
    }
}

fn find(oid: Oid) -> Option<&'static Named> {
    let at = NAMED.binary_search_by_key(&oid.0, |n| n.oid).ok()?;
    Some(&NAMED[at])
}

/// What the input arguments are called; nothing where they have no names.
pub fn arguments(oid: Oid) -> &'static [&'static str] {
    find(oid).map_or(&[], |n| n.names)
}

/// The text of an argument's default, by its place.
pub fn default(oid: Oid, place: usize) -> Option<&'static str> {
    let named = find(oid)?;
    let first = named.names.len() - named.defaults.len();
    named.defaults.get(place.checked_sub(first)?).copied()
}

/// By oid.
static NAMED: &[Named] = &[
    // jsonb_path_exists_tz
    named(
        1177,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_query_tz
    named(
        1179,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_query_array_tz
    named(
        1180,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // parse_ident
    named(1268, &["str", "strict"], &["true"]),
    // jsonb_path_query_first_tz
    named(
        2023,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_match_tz
    named(
        2030,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // pg_terminate_backend
    named(2096, &["pid", "timeout"], &["0"]),
    // regexp_replace
    named(2284, &["string", "pattern", "replacement"], &[]),
    // regexp_replace
    named(2285, &["string", "pattern", "replacement", "flags"], &[]),
    // regexp_matches
    named(2763, &["string", "pattern"], &[]),
    // regexp_matches
    named(2764, &["string", "pattern", "flags"], &[]),
    // regexp_split_to_table
    named(2765, &["string", "pattern"], &[]),
    // regexp_split_to_table
    named(2766, &["string", "pattern", "flags"], &[]),
    // regexp_split_to_array
    named(2767, &["string", "pattern"], &[]),
    // regexp_split_to_array
    named(2768, &["string", "pattern", "flags"], &[]),
    // jsonb_each
    named(3208, &["from_json"], &[]),
    // jsonb_object_field_text
    named(3214, &["from_json", "field_name"], &[]),
    // jsonb_array_element
    named(3215, &["from_json", "element_index"], &[]),
    // jsonb_array_element_text
    named(3216, &["from_json", "element_index"], &[]),
    // jsonb_extract_path
    named(3217, &["from_json", "path_elems"], &[]),
    // jsonb_array_elements
    named(3219, &["from_json"], &[]),
    // json_strip_nulls
    named(3261, &["target", "strip_in_arrays"], &["false"]),
    // jsonb_strip_nulls
    named(3262, &["target", "strip_in_arrays"], &["false"]),
    // jsonb_set
    named(
        3305,
        &["jsonb_in", "path", "replacement", "create_if_missing"],
        &["true"],
    ),
    // unnest
    named(3322, &["tsvector"], &[]),
    // jsonb_delete
    named(3343, &["from_json", "path_elems"], &[]),
    // pg_identify_object_as_address
    named(3382, &["classid", "objid", "objsubid"], &[]),
    // regexp_match
    named(3396, &["string", "pattern"], &[]),
    // regexp_match
    named(3397, &["string", "pattern", "flags"], &[]),
    // make_timestamp
    named(3461, &["year", "month", "mday", "hour", "min", "sec"], &[]),
    // make_timestamptz
    named(3462, &["year", "month", "mday", "hour", "min", "sec"], &[]),
    // make_timestamptz
    named(
        3463,
        &["year", "month", "mday", "hour", "min", "sec", "timezone"],
        &[],
    ),
    // make_interval
    named(
        3464,
        &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        &["0", "0", "0", "0", "0", "0", "0.0"],
    ),
    // jsonb_array_elements_text
    named(3465, &["from_json"], &[]),
    // jsonb_object_field
    named(3478, &["from_json", "field_name"], &[]),
    // pg_logical_emit_message
    named(
        3577,
        &["transactional", "prefix", "message", "flush"],
        &["false"],
    ),
    // pg_logical_emit_message
    named(
        3578,
        &["transactional", "prefix", "message", "flush"],
        &["false"],
    ),
    // jsonb_insert
    named(
        3579,
        &["jsonb_in", "path", "replacement", "insert_after"],
        &["false"],
    ),
    // pg_identify_object
    named(3839, &["classid", "objid", "objsubid"], &[]),
    // make_date
    named(3846, &["year", "month", "day"], &[]),
    // make_time
    named(3847, &["hour", "min", "sec"], &[]),
    // jsonb_each_text
    named(3932, &["from_json"], &[]),
    // jsonb_extract_path_text
    named(3940, &["from_json", "path_elems"], &[]),
    // json_object_field
    named(3947, &["from_json", "field_name"], &[]),
    // json_object_field_text
    named(3948, &["from_json", "field_name"], &[]),
    // json_array_element
    named(3949, &["from_json", "element_index"], &[]),
    // json_array_element_text
    named(3950, &["from_json", "element_index"], &[]),
    // json_extract_path
    named(3951, &["from_json", "path_elems"], &[]),
    // json_extract_path_text
    named(3953, &["from_json", "path_elems"], &[]),
    // pg_get_object_address
    named(3954, &["type", "object_names", "object_args"], &[]),
    // json_array_elements
    named(3955, &["from_json"], &[]),
    // json_each
    named(3958, &["from_json"], &[]),
    // json_each_text
    named(3959, &["from_json"], &[]),
    // json_populate_record
    named(3960, &["base", "from_json", "use_json_as_text"], &["false"]),
    // json_populate_recordset
    named(3961, &["base", "from_json", "use_json_as_text"], &["false"]),
    // json_array_elements_text
    named(3969, &["from_json"], &[]),
    // jsonb_path_exists
    named(
        4005,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_query
    named(
        4006,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_query_array
    named(
        4007,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_query_first
    named(
        4008,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_path_match
    named(
        4009,
        &["target", "path", "vars", "silent"],
        &["{}", "false"],
    ),
    // jsonb_set_lax
    named(
        5054,
        &[
            "jsonb_in",
            "path",
            "replacement",
            "create_if_missing",
            "null_value_treatment",
        ],
        &["true", "use_json_null"],
    ),
    // pg_input_error_info
    named(6211, &["value", "type_name"], &[]),
    // random_normal
    named(6212, &["mean", "stddev"], &["0", "1"]),
    // regexp_replace
    named(
        6251,
        &["string", "pattern", "replacement", "start", "N", "flags"],
        &[],
    ),
    // regexp_replace
    named(
        6252,
        &["string", "pattern", "replacement", "start", "N"],
        &[],
    ),
    // regexp_replace
    named(6253, &["string", "pattern", "replacement", "start"], &[]),
    // regexp_count
    named(6254, &["string", "pattern"], &[]),
    // regexp_count
    named(6255, &["string", "pattern", "start"], &[]),
    // regexp_count
    named(6256, &["string", "pattern", "start", "flags"], &[]),
    // regexp_instr
    named(6257, &["string", "pattern"], &[]),
    // regexp_instr
    named(6258, &["string", "pattern", "start"], &[]),
    // regexp_instr
    named(6259, &["string", "pattern", "start", "N"], &[]),
    // regexp_instr
    named(6260, &["string", "pattern", "start", "N", "endoption"], &[]),
    // regexp_instr
    named(
        6261,
        &["string", "pattern", "start", "N", "endoption", "flags"],
        &[],
    ),
    // regexp_instr
    named(
        6262,
        &[
            "string",
            "pattern",
            "start",
            "N",
            "endoption",
            "flags",
            "subexpr",
        ],
        &[],
    ),
    // regexp_like
    named(6263, &["string", "pattern"], &[]),
    // regexp_like
    named(6264, &["string", "pattern", "flags"], &[]),
    // regexp_substr
    named(6265, &["string", "pattern"], &[]),
    // regexp_substr
    named(6266, &["string", "pattern", "start"], &[]),
    // regexp_substr
    named(6267, &["string", "pattern", "start", "N"], &[]),
    // regexp_substr
    named(6268, &["string", "pattern", "start", "N", "flags"], &[]),
    // regexp_substr
    named(
        6269,
        &["string", "pattern", "start", "N", "flags", "subexpr"],
        &[],
    ),
    // random
    named(6339, &["min", "max"], &[]),
    // random
    named(6340, &["min", "max"], &[]),
    // random
    named(6341, &["min", "max"], &[]),
    // pg_get_acl
    named(6385, &["classid", "objid", "objsubid"], &[]),
    // array_sort
    named(6389, &["array", "descending"], &[]),
    // array_sort
    named(6390, &["array", "descending", "nulls_first"], &[]),
    // pg_get_sequence_data
    named(6427, &["sequence_oid"], &[]),
    // uuidv7
    named(6430, &["shift"], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_fits_the_functions() {
        assert!(NAMED.windows(2).all(|pair| pair[0].oid < pair[1].oid));
        for named in NAMED {
            assert!(named.defaults.len() <= named.names.len());
            if let Some(f) = crate::func::function_by_oid(Oid(named.oid)) {
                assert_eq!(f.args.len(), named.names.len(), "{}", f.name);
            }
        }
    }

    #[test]
    fn defaults_are_those_of_the_last_arguments() {
        let make_interval = Oid(3464);
        assert_eq!(default(make_interval, 0), Some("0"));
        assert_eq!(default(make_interval, 6), Some("0.0"));
        let jsonb_set = Oid(3305);
        assert_eq!(default(jsonb_set, 2), None);
        assert_eq!(default(jsonb_set, 3), Some("true"));
    }
}
