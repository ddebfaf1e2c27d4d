//! Which type goes to which, when, and how.

pub mod conversion;
pub(super) mod table;

use super::extension::EXTENSIONS;
use super::{EvalContext, EvalFn, EvalResult, FAMILIES};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use throng_types::sqltype::{element_of, made, type_info};
use throng_types::{Datum, Oid, SqlType, oid};

/// Where a cast may happen: each allows those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastContext {
    /// Anywhere an expression's type does not fit.
    Implicit,
    /// Storing into a column.
    Assignment,
    /// Written out: `CAST` or `::`.
    Explicit,
}

/// How a value is cast.
#[derive(Clone, Copy)]
pub enum CastMethod {
    /// The value is the same.
    Binary,
    /// By a function of the value.
    Function(EvalFn),
    /// By a function of the value and of the target's modifier.
    Sized(EvalFn),
    /// Written as text, read as the other type.
    Text,
    /// Each item of an array.
    Items(&'static Cast),
    /// An untyped literal or a NULL, read as the target type.
    Unknown,
}

/// A row of `pg_cast`, or a rule that stands for many.
#[derive(Clone, Copy)]
pub struct Cast {
    pub from: Oid,
    pub to: Oid,
    pub context: CastContext,
    pub method: CastMethod,
    /// The function's oid where there is one.
    pub function: Oid,
}

impl std::fmt::Debug for Cast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cast {} to {}", self.from, self.to)
    }
}
impl PartialEq for Cast {
    fn eq(&self, other: &Cast) -> bool {
        (self.from, self.to) == (other.from, other.to)
    }
}

const STRINGS: [Oid; 4] = [oid::TEXT, oid::VARCHAR, oid::BPCHAR, oid::NAME];

type Map = HashMap<(Oid, Oid), &'static Cast, FixedState>;

/// Vectors are arrays by another name.
const VECTORS: [(Oid, Oid); 2] = [
    (oid::INT2VECTOR, oid::INT2_ARRAY),
    (oid::OIDVECTOR, oid::OID_ARRAY),
];

static BY_TYPES: LazyLock<Map> = LazyLock::new(|| {
    // Whoever has a value of an extension's type has the extension.
    let mut map: Map = FAMILIES
        .iter()
        .flat_map(|f| f.casts)
        .chain(EXTENSIONS.iter().flat_map(|e| e.casts))
        .map(|c| ((c.from, c.to), c))
        .collect();
    // Rules made rows: every type reads from and writes to strings; arrays cast like their
    // elements.
    let types = throng_types::sqltype::all_types();
    let only_shown = |ty| matches!(ty, oid::RECORD | oid::VOID);
    let in_text = |ty| only_shown(ty) || ty == oid::CSTRING;
    let mut add = |cast: Cast| {
        map.entry((cast.from, cast.to))
            .or_insert_with(|| Box::leak(Box::new(cast)));
    };
    for ty in types.iter().filter(|t| !t.is_pseudo() || in_text(t.oid)) {
        for string in STRINGS {
            if ty.oid == string {
                continue;
            }
            let method = CastMethod::Text;
            let to_string = CastContext::Assignment;
            add(Cast {
                from: ty.oid,
                to: string,
                context: to_string,
                method,
                function: Oid::NONE,
            });
            if !only_shown(ty.oid) {
                let context = CastContext::Explicit;
                add(Cast {
                    from: string,
                    to: ty.oid,
                    context,
                    method,
                    function: Oid::NONE,
                });
            }
        }
        add(Cast {
            from: oid::UNKNOWN,
            to: ty.oid,
            context: CastContext::Implicit,
            method: CastMethod::Unknown,
            function: Oid::NONE,
        });
    }
    for (vector, array) in VECTORS {
        let (context, method) = (CastContext::Implicit, CastMethod::Binary);
        add(Cast {
            from: vector,
            to: array,
            context,
            method,
            function: Oid::NONE,
        });
    }
    let element_casts: Vec<(&'static Cast, Oid, Oid)> = map
        .values()
        .filter_map(|&c| {
            let array = |t| type_info(t).map(|t| t.array).filter(|&a| a != Oid::NONE);
            Some((c, array(c.from)?, array(c.to)?))
        })
        .filter(|(c, ..)| element_of(c.from).is_none() && element_of(c.to).is_none())
        .collect();
    for (cast, from, to) in element_casts {
        map.entry((from, to)).or_insert_with(|| {
            Box::leak(Box::new(Cast {
                from,
                to,
                context: cast.context,
                method: match cast.method {
                    CastMethod::Binary => CastMethod::Binary,
                    _ => CastMethod::Items(cast),
                },
                function: Oid::NONE,
            }))
        });
    }
    for (vector, array) in VECTORS {
        let of_array: Vec<&'static Cast> = map
            .values()
            .filter(|c| c.from == array && element_of(c.to).is_some())
            .copied()
            .collect();
        for cast in of_array {
            map.entry((vector, cast.to)).or_insert_with(|| {
                Box::leak(Box::new(Cast {
                    from: vector,
                    to: cast.to,
                    context: cast.context,
                    method: cast.method,
                    function: Oid::NONE,
                }))
            });
        }
    }
    map
});

/// How a value of one type is cast to another in this context; None where it may not be (or need
/// not: equal types).
pub fn find_cast(from: Oid, to: Oid, context: CastContext) -> Option<&'static Cast> {
    let known = BY_TYPES.get(&(from, to)).copied();
    known
        .or_else(|| made_cast(from, to))
        .filter(|c| c.context <= context)
}

/// The casts every type has, for a type that a user made.
fn made_cast(from: Oid, to: Oid) -> Option<&'static Cast> {
    const STRING_ARRAYS: [Oid; 4] = [
        oid::TEXT_ARRAY,
        oid::VARCHAR_ARRAY,
        oid::BPCHAR_ARRAY,
        oid::NAME_ARRAY,
    ];
    /// Made as they are first asked for: a few for each type there ever was.
    static MADE: LazyLock<Mutex<Map>> = LazyLock::new(Mutex::default);
    // An array of any type is shown as its items' type shows it.
    let shown = |ty| made::is_made(ty) || ty == oid::ANYARRAY;
    if !shown(from) && !made::is_made(to) {
        return None;
    }
    // A map that is only added to is whole whatever its holder did.
    let locked = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cast) = locked().get(&(from, to)) {
        return Some(cast);
    }
    let by_items = |from: Oid, to: Oid| {
        let cast = made_cast(element_of(from)?, element_of(to)?)?;
        Some((cast.context, CastMethod::Items(cast)))
    };
    let (context, method) = match (from, to) {
        (from, to) if made::is_range(from) && to == made::multirange_of(from) => {
            let eval = super::range::multirange;
            (CastContext::Explicit, CastMethod::Function(eval))
        }
        (oid::UNKNOWN, _) => (CastContext::Implicit, CastMethod::Unknown),
        (from, to) if STRINGS.contains(&from) && made::is_made(to) => {
            (CastContext::Explicit, CastMethod::Text)
        }
        (from, to) if STRINGS.contains(&to) && shown(from) => {
            (CastContext::Assignment, CastMethod::Text)
        }
        (from, to) if STRING_ARRAYS.contains(&from) || STRING_ARRAYS.contains(&to) => {
            by_items(from, to)?
        }
        _ => return None,
    };
    let cast: &'static Cast = Box::leak(Box::new(Cast {
        from,
        to,
        context,
        method,
        function: Oid::NONE,
    }));
    locked().insert((from, to), cast);
    Some(cast)
}

impl Cast {
    /// A cast that changes nothing in the value.
    pub const fn binary(from: Oid, to: Oid, context: CastContext) -> Cast {
        Cast {
            from,
            to,
            context,
            method: CastMethod::Binary,
            function: Oid::NONE,
        }
    }
    /// What PostgreSQL does by writing the value as text and reading that; `eval` comes to the
    /// same.
    pub const fn through_text(from: Oid, to: Oid, context: CastContext, eval: EvalFn) -> Cast {
        Cast::by(from, to, context, 0, eval)
    }
    /// A cast by a function, with the function's oid.
    pub const fn by(from: Oid, to: Oid, context: CastContext, function: u32, eval: EvalFn) -> Cast {
        Cast {
            from,
            to,
            context,
            method: CastMethod::Function(eval),
            function: Oid(function),
        }
    }
    /// A cast by a function that takes the target's modifier beside the value.
    pub const fn sized(
        from: Oid,
        to: Oid,
        context: CastContext,
        function: u32,
        eval: EvalFn,
    ) -> Cast {
        Cast {
            from,
            to,
            context,
            method: CastMethod::Sized(eval),
            function: Oid(function),
        }
    }
    /// The same as [`Cast::apply`], with the modifier that the target has.
    pub fn apply_to(&self, ctx: &EvalContext<'_>, value: &Datum, typmod: i32) -> EvalResult {
        match self.method {
            CastMethod::Sized(eval) if !value.is_null() => {
                eval(ctx, &[value.clone(), typmod.into()])
            }
            CastMethod::Items(cast) => conversion::array_items(ctx, value, cast, typmod),
            _ => self.apply(ctx, value),
        }
    }
    /// Casts a value. The target's modifier is applied separately, by
    /// [`typmod::apply`](crate::io::typmod::apply).
    pub fn apply(&self, ctx: &EvalContext<'_>, value: &Datum) -> EvalResult {
        if value.is_null() {
            return Ok(Datum::Null);
        }
        match self.method {
            CastMethod::Binary => Ok(conversion::relabel(value, self.to)),
            CastMethod::Function(eval) => eval(ctx, std::slice::from_ref(value)),
            CastMethod::Unknown | CastMethod::Text => {
                let mut text = Vec::new();
                crate::io::output_text(ctx, value, SqlType::plain(self.from), &mut text);
                let text = String::from_utf8(text)
                    .map_err(|_| throng_types::Error::internal("text output is not UTF-8"))?;
                Ok(crate::io::input_text(ctx, &text, SqlType::plain(self.to))?)
            }
            CastMethod::Sized(_) | CastMethod::Items(_) => self.apply_to(ctx, value, -1),
        }
    }
}
