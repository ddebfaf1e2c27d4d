use super::*;
use proptest::prelude::*;
use std::borrow::Cow;

fn tree() -> impl Strategy<Value = Json<'static>> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-20i64..20, 0u16..3).prop_map(|(n, scale)| Json::Number(Numeric::new(n, scale))),
        "[ab\u{1}\"é]{0,3}".prop_map(|s| Json::String(Cow::Owned(s))),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec(("[ab]{0,2}".prop_map(Cow::Owned), inner), 0..4)
                .prop_map(Json::Object),
        ]
    })
}

fn nested(levels: usize) -> Json<'static> {
    (0..levels).fold(Json::Null, |inner, _| Json::Array(vec![inner]))
}

proptest! {
    #[test]
    fn keys_order_as_values_do(a in tree(), b in tree()) {
        let (a, b) = (a.encode().unwrap(), b.encode().unwrap());
        let (mut x, mut y) = (vec![], vec![]);
        write_key(a.root(), true, &mut x);
        write_key(b.root(), true, &mut y);
        prop_assert_eq!(x.cmp(&y), a.compare(&b));
        prop_assert_eq!(a.compare(&b), b.compare(&a).reverse());
    }

    #[test]
    fn a_value_contains_itself(a in tree()) {
        let a = a.encode().unwrap();
        prop_assert!(contains(a.root(), a.root()));
        prop_assert!(a.compare(&a).is_eq());
    }

    #[test]
    fn damaged_bytes_read_as_something(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let value = Jsonb::from_stored(&bytes);
        prop_assert!(!value.root().to_text().is_empty());
    }
}

#[test]
fn keys_are_sorted_by_length_and_the_last_of_equals_stays() {
    let member = |k: &'static str, n: i64| (Cow::Borrowed(k), Json::Number(Numeric::from(n)));
    let object = Json::Object(vec![
        member("bb", 1),
        member("c", 2),
        member("a", 3),
        member("bb", 4),
    ]);
    let value = object.encode().unwrap();
    assert_eq!(value.root().to_text(), r#"{"a": 3, "c": 2, "bb": 4}"#);
    assert_eq!(value.root().member("bb").unwrap().to_text(), "4");
    assert!(value.root().member("d").is_none());
}

#[test]
fn parts_are_taken_as_they_are() {
    let inner = Json::Array(vec![Json::Bool(true)]).encode().unwrap();
    let outer = Json::Array(vec![inner.root().into(), Json::Null]);
    let outer = outer.encode().unwrap();
    assert_eq!(outer.root().to_text(), "[[true], null]");
    assert_eq!(outer.root().element(-2).unwrap().to_text(), "[true]");
    assert!(outer.root().element(2).is_none());
}

/// The deepest value can be made, compared, keyed and written on the stack that sessions have; one
/// level more is refused.
#[test]
fn depth_is_bounded() {
    let thread = std::thread::Builder::new().stack_size(4 << 20);
    let walked = thread.spawn(|| {
        let deepest = nested(MAX_DEPTH).encode().unwrap();
        assert!(deepest.compare(&deepest.clone()).is_eq());
        assert!(contains(deepest.root(), deepest.root()));
        let mut key = vec![];
        write_key(deepest.root(), true, &mut key);
        let mut text = vec![];
        deepest.root().write_pretty(&mut text);
        assert!(text.len() > MAX_DEPTH);
        let above = Json::Array(vec![deepest.root().into()]);
        assert_eq!(
            above.encode().unwrap_err().code(),
            state::STATEMENT_TOO_COMPLEX
        );
        let error = nested(MAX_DEPTH + 1).encode().unwrap_err();
        assert_eq!(error.code(), state::STATEMENT_TOO_COMPLEX);
    });
    walked.unwrap().join().unwrap();
}
