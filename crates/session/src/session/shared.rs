//! What many sessions of a thread hold alike, held by one count: with a crowd of sessions a count
//! of each one's own would have left the core's cache when its session's next statement raises it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use throng_catalog::Catalog;
use throng_values::io::FormatSettings;

use super::SharedCatalog;

thread_local! {
    static CATALOG: RefCell<Weak<Arc<Catalog>>> = const { RefCell::new(Weak::new()) };
    static FORMAT: RefCell<Weak<FormatSettings>> = const { RefCell::new(Weak::new()) };
}

/// A catalog as it was published.
pub(super) fn catalog(published: Arc<Catalog>) -> SharedCatalog {
    CATALOG.with_borrow_mut(|last| shared(last, published, Arc::ptr_eq))
}

/// What values look like.
pub(super) fn format(settings: FormatSettings) -> Rc<FormatSettings> {
    FORMAT.with_borrow_mut(|last| shared(last, settings, FormatSettings::eq))
}

/// The last one asked for, if it is this and somebody still has it.
fn shared<T>(last: &mut Weak<T>, value: T, same: impl FnOnce(&T, &T) -> bool) -> Rc<T> {
    match last.upgrade() {
        Some(last) if same(&last, &value) => last,
        _ => {
            let value = Rc::new(value);
            *last = Rc::downgrade(&value);
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_held_once() {
        let mut last = Weak::new();
        let first = shared(&mut last, 1, i32::eq);
        let second = shared(&mut last, 1, i32::eq);
        assert!(Rc::ptr_eq(&first, &second));
        let other = shared(&mut last, 2, i32::eq);
        assert_eq!((*first, *other), (1, 2));
        drop(other);
        assert!(last.upgrade().is_none());
    }
}
