//! OVER and WINDOW.

use throng_types::Result;
use throng_types::error::state;

use super::Parser;
use super::ast::*;
use super::lexer::error_at;

impl Parser<'_> {
    /// What follows a call that is to be computed over a window.
    pub(super) fn over(&mut self) -> Result<Option<Over>> {
        if !self.word("over") {
            return Ok(None);
        }
        if self.is_punct('(') {
            return Ok(Some(Over::Spec(Box::new(self.window_spec()?))));
        }
        let pos = self.pos();
        Ok(Some(Over::Named(self.name()?, pos)))
    }

    pub(super) fn window_clause(&mut self) -> Result<Vec<NamedWindow>> {
        if !self.word("window") {
            return Ok(vec![]);
        }
        self.list(|p| {
            let name = p.name()?;
            p.keyword("as")?;
            let spec = p.window_spec()?;
            Ok(NamedWindow { name, spec })
        })
    }

    fn window_spec(&mut self) -> Result<WindowSpec> {
        let pos = self.pos();
        self.nested(|p| {
            p.expect('(')?;
            // These words are names elsewhere, and here what they say.
            let own = p.any_of(&["partition", "range", "rows", "groups"]);
            let base = match p.is_name() && !own {
                true => Some(p.name()?),
                false => None,
            };
            let partition = match p.words(&["partition", "by"]) {
                true => p.list(Self::expr)?,
                false => vec![],
            };
            let order = match p.is("order") {
                true => {
                    p.keywords(&["order", "by"])?;
                    p.order_by_list()?
                }
                false => vec![],
            };
            let frame = p.frame()?;
            p.expect(')')?;
            Ok(WindowSpec {
                base,
                partition,
                order,
                frame,
                pos,
            })
        })
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let mode = if self.word("range") {
            FrameMode::Range
        } else if self.word("rows") {
            FrameMode::Rows
        } else if self.word("groups") {
            FrameMode::Groups
        } else {
            return Ok(None);
        };
        let wrong = |message: &str, at: Pos| Err(error_at(state::WINDOWING_ERROR, message, at));
        let between = self.word("between");
        let start_pos = self.pos();
        let start = self.frame_bound()?;
        if start == FrameBound::UnboundedFollowing {
            return wrong("frame start cannot be UNBOUNDED FOLLOWING", start_pos);
        }
        let mut end = FrameBound::CurrentRow;
        if between {
            self.keyword("and")?;
            let end_pos = self.pos();
            end = self.frame_bound()?;
            match (&start, &end) {
                (_, FrameBound::UnboundedPreceding) => {
                    return wrong("frame end cannot be UNBOUNDED PRECEDING", end_pos);
                }
                (FrameBound::CurrentRow, FrameBound::Preceding(_)) => {
                    let message = "frame starting from current row cannot have preceding rows";
                    return wrong(message, end_pos);
                }
                (FrameBound::Following(_), FrameBound::Preceding(_) | FrameBound::CurrentRow) => {
                    let message = "frame starting from following row cannot have preceding rows";
                    return wrong(message, end_pos);
                }
                _ => {}
            }
        } else if matches!(start, FrameBound::Following(_)) {
            let message = "frame starting from following row cannot end with current row";
            return wrong(message, start_pos);
        }
        let exclude = self.exclusion()?;
        Ok(Some(Frame {
            mode,
            start,
            end,
            between,
            exclude,
        }))
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.words(&["unbounded", "preceding"]) {
            return Ok(FrameBound::UnboundedPreceding);
        }
        if self.words(&["unbounded", "following"]) {
            return Ok(FrameBound::UnboundedFollowing);
        }
        if self.words(&["current", "row"]) {
            return Ok(FrameBound::CurrentRow);
        }
        let offset = self.expr()?;
        if self.word("preceding") {
            return Ok(FrameBound::Preceding(offset));
        }
        self.keyword("following")?;
        Ok(FrameBound::Following(offset))
    }

    fn exclusion(&mut self) -> Result<Exclude> {
        if !self.word("exclude") {
            return Ok(Exclude::Nothing);
        }
        if self.words(&["current", "row"]) {
            Ok(Exclude::CurrentRow)
        } else if self.word("group") {
            Ok(Exclude::Group)
        } else if self.word("ties") {
            Ok(Exclude::Ties)
        } else {
            self.keywords(&["no", "others"])?;
            Ok(Exclude::Nothing)
        }
    }
}
