//! TPC-C after its specification, revision 5.11 (tpc.org): nine tables, five transactions,
//! terminals with decks.
//!
//! What is as specified: population (clause 4.3.3), inputs with NURand and last names (2.1.6,
//! 4.3.2.3), 1 % of New-Order rolled back for an unused item (2.4.1.4), 1 % of lines and 15 % of
//! payments remote (2.4.1.5, 2.5.1.2), 60 % of customers by last name, the mix by a deck of 23
//! cards (5.2.4.2), keying and think times when asked for (5.2.5.7), consistency conditions
//! (3.3.2).
//!
//! What is not, so that the figure is no published tpmC: transactions run at READ COMMITTED (as
//! drivers for PostgreSQL do, and here for MySQL too), Delivery runs where its terminal waits for
//! it instead of being queued, there is no terminal emulator, and without keying and think times a
//! warehouse does far more than the 12.86 tpmC it is allowed.
//!
//! To keep deadlocks out of the figures, the lines of an order are processed by warehouse and item,
//! and a payment changes customer, district and warehouse in this order.

mod conditions;
mod input;
mod load;
mod names;
mod population;
mod sql;
mod transactions;

use std::sync::Arc;
use std::time::Duration;

use self::input::{Constants, DistrictId, Input};
use self::sql::Statements;
use super::{Client, Condition, Doing, Link, Pauses, Workload};
use crate::load::dialect::Dialect;
use crate::load::drive::Measured;
use crate::load::random::Random;
use crate::load::trouble::Result;
use crate::load::url::Target;

pub const DISTRICTS: i64 = 10;
pub const CUSTOMERS: i64 = 3_000;
pub const ITEMS: i64 = 100_000;

/// The five transactions; also the places in [`Workload::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

use Transaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};

const NAMES: [&str; 5] = [
    "new order",
    "payment",
    "order status",
    "delivery",
    "stock level",
];

impl Transaction {
    /// Clause 5.2.5.7: seconds of keying (the least), and of thinking on average.
    fn seconds(self) -> (u64, f64) {
        match self {
            NewOrder => (18, 12.0),
            Payment => (3, 12.0),
            OrderStatus => (2, 10.0),
            Delivery => (2, 5.0),
            StockLevel => (2, 5.0),
        }
    }
}

/// Clause 5.2.4.2: what a terminal deals itself before it shuffles again. One card in 23 is 4.35 %.
const DECK: [Transaction; 23] = {
    let mut deck = [NewOrder; 23];
    let mut card = 10;
    while card < 20 {
        deck[card] = Payment;
        card += 1;
    }
    deck[20] = OrderStatus;
    deck[21] = Delivery;
    deck[22] = StockLevel;
    deck
};

pub struct Tpcc {
    warehouses: i64,
    /// Keying and think times as specified.
    waits: bool,
    sql: Arc<Statements>,
}

impl Tpcc {
    pub fn new(warehouses: i64, waits: bool, dialect: Dialect) -> Tpcc {
        Tpcc {
            warehouses,
            waits,
            sql: Arc::new(Statements::new(dialect)),
        }
    }

    /// New-Order transactions committed a minute. Those rolled back on purpose are not counted.
    pub fn tpmc(measured: &Measured) -> f64 {
        let orders = measured.kinds[NewOrder as usize].committed as f64;
        orders * 60.0 / measured.elapsed.as_secs_f64()
    }
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn kinds(&self) -> Vec<String> {
        NAMES.map(str::to_owned).into()
    }

    fn load(&self, target: &Target, say: &dyn Fn(&str)) -> Result<()> {
        load::load(target, self.warehouses, say)
    }

    fn client(&self, number: usize, _of: usize, seed: u64) -> Box<dyn Client> {
        // Terminals are dealt to warehouses evenly, and a warehouse's to its districts (clause
        // 2.8.1.1).
        let number = number as i64;
        let home = DistrictId {
            warehouse: number % self.warehouses + 1,
            district: number / self.warehouses % DISTRICTS + 1,
        };
        Box::new(Terminal {
            sql: self.sql.clone(),
            warehouses: self.warehouses,
            waits: self.waits,
            home,
            random: Random::of(seed, number as u64),
            deck: Deck::new(),
            input: None,
        })
    }

    fn check(&self, target: &Target) -> Result<Vec<Condition>> {
        conditions::check(target)
    }
}

/// Cards dealt until none is left, then shuffled anew.
struct Deck {
    cards: [Transaction; DECK.len()],
    left: usize,
}

impl Deck {
    fn new() -> Deck {
        Deck {
            cards: DECK,
            left: 0,
        }
    }

    fn deal(&mut self, random: &mut Random) -> Transaction {
        if self.left == 0 {
            random.shuffle(&mut self.cards);
            self.left = self.cards.len();
        }
        self.left -= 1;
        self.cards[self.left]
    }
}

struct Terminal {
    sql: Arc<Statements>,
    warehouses: i64,
    waits: bool,
    home: DistrictId,
    random: Random,
    deck: Deck,
    /// What was drawn last; nothing before the first.
    input: Option<(Transaction, Input)>,
}

impl Client for Terminal {
    fn draw(&mut self) -> usize {
        let card = self.deck.deal(&mut self.random);
        let mut draw = input::Draw {
            random: &mut self.random,
            home: self.home,
            warehouses: self.warehouses,
            constants: Constants::RUN,
        };
        self.input = Some((card, draw.input(card)));
        card as usize
    }

    fn run<'a>(&'a mut self, link: &'a mut Link) -> Doing<'a> {
        let (_, input) = self
            .input
            .as_ref()
            .expect("a transaction is drawn before it is run");
        Box::pin(transactions::run(&self.sql, input, self.home, link))
    }

    fn pauses(&mut self) -> Pauses {
        let (true, Some((card, _))) = (self.waits, &self.input) else {
            return Pauses::default();
        };
        let (keying, thinking) = card.seconds();
        // Clause 5.2.5.4: cut at ten times the mean.
        let think = self.random.exponential(thinking).min(10.0 * thinking);
        Pauses {
            before: Duration::from_secs(keying),
            after: Duration::from_secs_f64(think),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_holds_the_mix_and_is_dealt_out_before_it_is_shuffled() {
        let mut random = Random::of(1, 1);
        let mut deck = Deck::new();
        let mut orders = Vec::new();
        for _ in 0..2 {
            let hand: Vec<Transaction> = DECK.iter().map(|_| deck.deal(&mut random)).collect();
            let count = |t: Transaction| hand.iter().filter(|c| **c == t).count();
            let counts = [NewOrder, Payment, OrderStatus, Delivery, StockLevel].map(count);
            assert_eq!(counts, [10, 10, 1, 1, 1]);
            orders.push(hand);
        }
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn terminals_are_spread_and_wait_as_told() {
        let tpcc = Tpcc::new(3, true, Dialect::Postgres);
        let mut terminal = tpcc.client(4, 30, 1);
        for _ in 0..DECK.len() {
            let kind = terminal.draw();
            let pauses = terminal.pauses();
            let keying = [18, 3, 2, 2, 2][kind];
            assert_eq!(pauses.before, Duration::from_secs(keying));
            assert!(pauses.after <= Duration::from_secs(120));
        }
        let mut terminal = Tpcc::new(3, false, Dialect::Postgres).client(4, 30, 1);
        terminal.draw();
        assert_eq!(terminal.pauses(), Pauses::default());
    }
}
