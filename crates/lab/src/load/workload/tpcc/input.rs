//! What terminals ask for: the inputs of the five transactions, drawn as clauses 2.4.1 to 2.8.1
//! say.

use super::Transaction::{self, *};
use super::names::last_name;
use super::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::load::random::Random;

/// NURand's constants C, chosen once for a load and once for a run (clause 2.1.6.1).
#[derive(Clone, Copy)]
pub struct Constants {
    pub last: i64,
    pub customer: i64,
    pub item: i64,
}

impl Constants {
    pub const LOAD: Constants = Constants {
        last: 157,
        customer: 259,
        item: 7911,
    };
    pub const RUN: Constants = Constants {
        last: 223,
        ..Constants::LOAD
    };
}

const _: () = {
    // Clause 2.1.6.1: C of last names differs between load and run by 65 to 119, but not by 96 or 112.
    let delta = (Constants::RUN.last - Constants::LOAD.last).abs();
    assert!(delta >= 65 && delta <= 119 && delta != 96 && delta != 112);
};

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistrictId {
    pub warehouse: i64,
    pub district: i64,
}

/// How a customer is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    Id(i64),
    Last(String),
}

#[derive(Clone, Debug)]
pub struct Line {
    pub item: i64,
    pub warehouse: i64,
    pub quantity: i64,
}

#[derive(Clone, Debug)]
pub enum Input {
    NewOrder {
        district: i64,
        customer: i64,
        /// By warehouse and item; an unused item, if any, last.
        lines: Vec<Line>,
    },
    Payment {
        district: i64,
        /// Where the customer lives, which may be elsewhere.
        at: DistrictId,
        who: Who,
        /// Cents.
        amount: i64,
    },
    OrderStatus {
        district: i64,
        who: Who,
    },
    Delivery {
        carrier: i64,
    },
    StockLevel {
        threshold: i64,
    },
}

pub struct Draw<'a> {
    pub random: &'a mut Random,
    pub home: DistrictId,
    pub warehouses: i64,
    pub constants: Constants,
}

impl Draw<'_> {
    pub fn input(&mut self, transaction: Transaction) -> Input {
        match transaction {
            NewOrder => self.new_order(),
            Payment => self.payment(),
            OrderStatus => Input::OrderStatus {
                district: self.district(),
                who: self.who(),
            },
            Delivery => Input::Delivery {
                carrier: self.random.within(1, 10),
            },
            StockLevel => Input::StockLevel {
                threshold: self.random.within(10, 20),
            },
        }
    }

    fn new_order(&mut self) -> Input {
        let district = self.district();
        let customer = self.customer();
        let count = self.random.within(5, 15);
        let unused_item = self.random.percent(1);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        lines.sort_by_key(|line| (line.warehouse, line.item));
        if let (true, Some(last)) = (unused_item, lines.last_mut()) {
            last.item = ITEMS + 1;
        }
        Input::NewOrder {
            district,
            customer,
            lines,
        }
    }

    fn line(&mut self) -> Line {
        let remote = self.random.percent(1);
        Line {
            item: self.random.nurand(8191, self.constants.item, 1, ITEMS),
            warehouse: if remote {
                self.other_warehouse()
            } else {
                self.home.warehouse
            },
            quantity: self.random.within(1, 10),
        }
    }

    fn payment(&mut self) -> Input {
        let district = self.district();
        let at = match self.random.percent(85) {
            true => DistrictId {
                district,
                ..self.home
            },
            false => DistrictId {
                warehouse: self.other_warehouse(),
                district: self.district(),
            },
        };
        Input::Payment {
            district,
            at,
            who: self.who(),
            amount: self.random.within(100, 500_000),
        }
    }

    fn district(&mut self) -> i64 {
        self.random.within(1, DISTRICTS)
    }

    fn customer(&mut self) -> i64 {
        self.random
            .nurand(1023, self.constants.customer, 1, CUSTOMERS)
    }

    fn who(&mut self) -> Who {
        match self.random.percent(60) {
            true => Who::Last(last_name(self.random.nurand(
                255,
                self.constants.last,
                0,
                999,
            ))),
            false => Who::Id(self.customer()),
        }
    }

    /// Any but the home warehouse; that one if it is the only one.
    fn other_warehouse(&mut self) -> i64 {
        if self.warehouses == 1 {
            return self.home.warehouse;
        }
        let drawn = self.random.within(1, self.warehouses - 1);
        if drawn < self.home.warehouse {
            drawn
        } else {
            drawn + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: usize = 20_000;

    fn inputs(transaction: Transaction, warehouses: i64) -> Vec<Input> {
        let mut random = Random::of(11, 0);
        let mut draw = Draw {
            random: &mut random,
            home: DistrictId {
                warehouse: 2.min(warehouses),
                district: 3,
            },
            warehouses,
            constants: Constants::RUN,
        };
        (0..DRAWN).map(|_| draw.input(transaction)).collect()
    }

    /// Whether `count` of `of` is near `percent`, by four standard deviations.
    fn about(count: usize, of: usize, percent: f64) -> bool {
        let (n, p) = (of as f64, percent / 100.0);
        (count as f64 - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn new_orders() {
        let (mut unused, mut lines_drawn, mut remote) = (0, 0, 0);
        for input in inputs(NewOrder, 5) {
            let Input::NewOrder {
                district,
                customer,
                lines,
            } = input
            else {
                panic!("another transaction");
            };
            assert!((1..=DISTRICTS).contains(&district) && (1..=CUSTOMERS).contains(&customer));
            assert!((5..=15).contains(&lines.len()));
            assert!(lines.iter().all(|l| (1..=10).contains(&l.quantity)));
            assert!(lines.iter().all(|l| (1..=5).contains(&l.warehouse)));
            let (last, before) = lines.split_last().expect("at least five");
            assert!(before.iter().all(|l| (1..=ITEMS).contains(&l.item)));
            unused += usize::from(last.item > ITEMS);
            lines_drawn += lines.len();
            remote += lines.iter().filter(|l| l.warehouse != 2).count();
        }
        assert!(about(unused, DRAWN, 1.0), "{unused}");
        assert!(about(remote, lines_drawn, 1.0), "{remote} of {lines_drawn}");
    }

    #[test]
    fn payments() {
        let (mut remote, mut named) = (0, 0);
        for input in inputs(Payment, 5) {
            let Input::Payment {
                district,
                at,
                who,
                amount,
            } = input
            else {
                panic!("another transaction");
            };
            assert!((100..=500_000).contains(&amount));
            assert!(at.warehouse != 2 || at.district == district);
            remote += usize::from(at.warehouse != 2);
            named += usize::from(matches!(who, Who::Last(_)));
        }
        assert!(about(remote, DRAWN, 15.0), "{remote}");
        assert!(about(named, DRAWN, 60.0), "{named}");
    }

    #[test]
    fn one_warehouse_has_nothing_remote() {
        for input in inputs(Payment, 1) {
            assert!(matches!(input, Input::Payment { at, .. } if at.warehouse == 1));
        }
    }
}
