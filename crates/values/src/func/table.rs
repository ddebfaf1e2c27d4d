//! How families write their tables: a row each, with the oids of PostgreSQL's catalogs.

/// One row a function: oid, name, arguments, result, what computes it, and what it is unlike a
/// strict and immutable one in.
macro_rules! functions {
    ($($oid:literal $name:literal ($($arg:ident),*) $ret:ident $eval:ident $(, $change:ident)*;)*) => {
        pub static FUNCTIONS: &[Function] = &[
            $(Function::new($oid, $name, &[$($arg),*], $ret, $eval)$(.$change())*,)*
        ];
    };
}

/// One row an operator: oid, name, operand types (on the left of a prefix operator NONE), result,
/// the oid and name of its function, what computes it, commutator, negator.
macro_rules! operators {
    ($($oid:literal $name:literal $left:ident $right:ident $ret:ident $code:literal $code_name:literal
        $eval:ident $commutator:literal $negator:literal;)*) => {
        pub static OPERATORS: &[Operator] = &[$(
            Operator::new($oid, $name, $left, $right, $ret, ($code, $code_name), $eval)
                .related($commutator, $negator),
        )*];
    };
}

/// One row a cast: from, to, where it may happen, and how: a function's oid and what computes it
/// (`sized` from the target's modifier, too), or `0 binary`.
macro_rules! casts {
    ($($from:ident $to:ident $context:ident $oid:tt $eval:tt $($sized:ident)?;)*) => {
        pub static CASTS: &[Cast] = &[
            $(casts!(@row $from $to $context $oid $eval $($sized)?),)*
        ];
    };
    (@row $from:ident $to:ident $context:ident 0 binary) => {
        Cast::binary($from, $to, casts!(@context $context))
    };
    (@row $from:ident $to:ident $context:ident $oid:literal $eval:ident) => {
        Cast::by($from, $to, casts!(@context $context), $oid, $eval)
    };
    (@row $from:ident $to:ident $context:ident $oid:literal $eval:ident sized) => {
        Cast::sized($from, $to, casts!(@context $context), $oid, $eval)
    };
    (@context implicit) => { CastContext::Implicit };
    (@context assignment) => { CastContext::Assignment };
    (@context explicit) => { CastContext::Explicit };
}

pub(in crate::func) use {casts, functions, operators};
