//! The rows of the initial database, as lines of COPY's text form (clause 4.3.3.1).
//!
//! Every district's rows come from random streams of their own, so tables can be loaded in any
//! order and at once, and an order's lines agree with the order.

use super::input::Constants;
use super::names::last_name;
use super::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::load::random::Random;
use crate::load::sql::Arg;

/// Orders up to this one are delivered already.
const DELIVERED: i64 = 2_100;
/// Each customer has ordered once.
pub const ORDERS: i64 = CUSTOMERS;

const SEED: u64 = 0x7c0c;

/// The random stream of a table's part.
fn stream(table: u64, warehouse: i64, district: i64) -> Random {
    Random::of(
        SEED,
        table << 40 | (warehouse as u64) << 8 | district as u64,
    )
}

/// Writes one line.
struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    fn arg(&mut self, arg: Arg<'_>) -> &mut Self {
        match arg {
            Arg::Null => self.0.extend_from_slice(b"\\N"),
            arg => arg.write(self.0),
        }
        self.0.push(b'\t');
        self
    }

    fn int(&mut self, n: i64) -> &mut Self {
        self.arg(Arg::Int(n))
    }

    fn text(&mut self, random: &mut Random, low: i64, high: i64) -> &mut Self {
        random.text(low, high, self.0);
        self.0.push(b'\t');
        self
    }

    /// Two streets, city, state, zip.
    fn address(&mut self, random: &mut Random) -> &mut Self {
        for _ in 0..3 {
            self.text(random, 10, 20);
        }
        self.text(random, 2, 2);
        let zip = format!("{:04}11111", random.within(0, 9999));
        self.arg(Arg::Text(&zip))
    }

    /// 26 to 50 signs, in one case of ten with ORIGINAL somewhere.
    fn data(&mut self, random: &mut Random) -> &mut Self {
        let start = self.0.len();
        random.text(26, 50, self.0);
        if random.percent(10) {
            let length = self.0.len() - start;
            let at = start + random.within(0, length as i64 - 8) as usize;
            self.0[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
        self.0.push(b'\t');
        self
    }

    fn end(&mut self) {
        *self.0.last_mut().expect("a line has columns") = b'\n';
    }
}

/// A source of lines: called until it says that there is nothing more.
pub type Lines<'a> = Box<dyn FnMut(&mut Vec<u8>) -> bool + 'a>;

/// One line for each of 1 to `count`.
fn numbered<'a>(count: i64, mut line: impl FnMut(i64, Line<'_>) + 'a) -> Lines<'a> {
    let mut next = 1;
    Box::new(move |out| {
        line(next, Line(out));
        next += 1;
        next <= count
    })
}

/// For each district of a warehouse the lines of 1 to `count`; `line` is given district, number and
/// the district's random stream.
fn by_district<'a>(
    table: u64,
    warehouse: i64,
    count: i64,
    mut line: impl FnMut(i64, i64, &mut Random, &mut Vec<u8>) + 'a,
) -> Lines<'a> {
    let (mut district, mut next) = (1, 1);
    let mut random = stream(table, warehouse, district);
    Box::new(move |out| {
        line(district, next, &mut random, out);
        next += 1;
        if next > count {
            (district, next) = (district + 1, 1);
            random = stream(table, warehouse, district);
        }
        district <= DISTRICTS
    })
}

pub fn items() -> Lines<'static> {
    let mut random = stream(1, 0, 0);
    numbered(ITEMS, move |item, mut line| {
        line.int(item).int(random.within(1, 10_000));
        line.text(&mut random, 14, 24)
            .arg(Arg::Cents(random.within(100, 10_000)));
        line.data(&mut random).end();
    })
}

pub fn warehouses(count: i64) -> Lines<'static> {
    numbered(count, |warehouse, mut line| {
        let mut random = stream(2, warehouse, 0);
        line.int(warehouse)
            .text(&mut random, 6, 10)
            .address(&mut random);
        let tax = random.within(0, 2000);
        line.arg(Arg::Rate(tax))
            .arg(Arg::Cents(300_000 * 100))
            .end();
    })
}

pub fn districts(warehouse: i64) -> Lines<'static> {
    numbered(DISTRICTS, move |district, mut line| {
        let mut random = stream(3, warehouse, district);
        line.int(district).int(warehouse);
        line.text(&mut random, 6, 10).address(&mut random);
        let tax = random.within(0, 2000);
        line.arg(Arg::Rate(tax))
            .arg(Arg::Cents(30_000 * 100))
            .int(ORDERS + 1)
            .end();
    })
}

pub fn stock(warehouse: i64) -> Lines<'static> {
    let mut random = stream(4, warehouse, 0);
    numbered(ITEMS, move |item, mut line| {
        line.int(item).int(warehouse).int(random.within(10, 100));
        for _ in 0..DISTRICTS {
            line.text(&mut random, 24, 24);
        }
        line.int(0).int(0).int(0).data(&mut random).end();
    })
}

pub fn customers(warehouse: i64, now: &str) -> Lines<'_> {
    by_district(
        5,
        warehouse,
        CUSTOMERS,
        move |district, customer, random, out| {
            let mut line = Line(out);
            line.int(customer).int(district).int(warehouse);
            line.text(random, 8, 16).arg(Arg::Text("OE"));
            // The first thousand have all names once, the others by the skew of the load.
            let name = match customer <= 1000 {
                true => customer - 1,
                false => random.nurand(255, Constants::LOAD.last, 0, 999),
            };
            line.arg(Arg::Text(&last_name(name))).address(random);
            let phone = format!("{:016}", random.within(0, 9_999_999_999_999_999));
            let credit = if random.percent(10) { "BC" } else { "GC" };
            line.arg(Arg::Text(&phone))
                .arg(Arg::Text(now))
                .arg(Arg::Text(credit));
            line.arg(Arg::Cents(50_000 * 100))
                .arg(Arg::Rate(random.within(0, 5000)));
            line.arg(Arg::Cents(-10 * 100))
                .arg(Arg::Cents(10 * 100))
                .int(1)
                .int(0);
            line.text(random, 300, 500).end();
        },
    )
}

pub fn histories(warehouse: i64, now: &str) -> Lines<'_> {
    by_district(
        6,
        warehouse,
        CUSTOMERS,
        move |district, customer, random, out| {
            let mut line = Line(out);
            line.int(customer)
                .int(district)
                .int(warehouse)
                .int(district)
                .int(warehouse);
            line.arg(Arg::Text(now))
                .arg(Arg::Cents(10 * 100))
                .text(random, 12, 24)
                .end();
        },
    )
}

pub fn orders(warehouse: i64, now: &str) -> Lines<'_> {
    let mut customers: Vec<i64> = Vec::new();
    by_district(7, warehouse, ORDERS, move |district, order, random, out| {
        if order == 1 {
            customers = (1..=CUSTOMERS).collect();
            random.shuffle(&mut customers);
        }
        let carrier = random.within(1, 10);
        let mut line = Line(out);
        line.int(order).int(district).int(warehouse);
        line.int(customers[order as usize - 1]).arg(Arg::Text(now));
        line.arg(if order <= DELIVERED {
            Arg::Int(carrier)
        } else {
            Arg::Null
        });
        line.int(lines_of(warehouse, district, order)).int(1).end();
    })
}

pub fn order_lines(warehouse: i64, now: &str) -> Lines<'_> {
    by_district(8, warehouse, ORDERS, move |district, order, random, out| {
        for number in 1..=lines_of(warehouse, district, order) {
            let delivered = order <= DELIVERED;
            let amount = if delivered {
                0
            } else {
                random.within(1, 999_999)
            };
            let mut line = Line(out);
            line.int(order).int(district).int(warehouse).int(number);
            line.int(random.within(1, ITEMS)).int(warehouse);
            line.arg(if delivered { Arg::Text(now) } else { Arg::Null });
            line.int(5)
                .arg(Arg::Cents(amount))
                .text(random, 24, 24)
                .end();
        }
    })
}

pub fn new_orders(warehouse: i64) -> Lines<'static> {
    by_district(
        9,
        warehouse,
        ORDERS - DELIVERED,
        move |district, number, _, out| {
            Line(out)
                .int(DELIVERED + number)
                .int(district)
                .int(warehouse)
                .end();
        },
    )
}

/// How many lines an order of the initial database has.
fn lines_of(warehouse: i64, district: i64, order: i64) -> i64 {
    stream(10 + order as u64, warehouse, district).within(5, 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01 00:00:00";

    fn columns(mut lines: Lines<'_>) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        while lines(&mut out) {}
        let text = String::from_utf8(out).expect("UTF-8");
        text.lines()
            .map(|l| l.split('\t').map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn an_orders_lines_agree_with_the_order() {
        let orders = columns(orders(1, NOW));
        let lines = columns(order_lines(1, NOW));
        assert_eq!(orders.len() as i64, ORDERS * DISTRICTS);
        let said: i64 = orders
            .iter()
            .map(|o| o[6].parse::<i64>().expect("a count"))
            .sum();
        assert_eq!(lines.len() as i64, said);
        // 5 to 15 lines, each as likely: ten on average.
        assert!((295_000..305_000).contains(&said), "{said}");
        let undelivered = orders.iter().filter(|o| o[5] == "\\N").count() as i64;
        assert_eq!(undelivered, (ORDERS - DELIVERED) * DISTRICTS);
        assert_eq!(columns(new_orders(1)).len() as i64, undelivered);
        let mut customers: Vec<i64> = orders[..3000]
            .iter()
            .map(|o| o[3].parse().expect("an id"))
            .collect();
        customers.sort_unstable();
        assert!(customers.into_iter().eq(1..=CUSTOMERS));
    }

    #[test]
    fn customers_have_every_name_and_their_columns() {
        let customers = columns(customers(1, NOW));
        assert_eq!(customers.len() as i64, CUSTOMERS * DISTRICTS);
        assert!(customers.iter().all(|c| c.len() == 21));
        let mut names: Vec<&str> = customers[..1000].iter().map(|c| c[5].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 1000);
        let bad = customers.iter().filter(|c| c[13] == "BC").count();
        assert!((2_700..3_300).contains(&bad), "{bad}");
    }

    #[test]
    fn a_tenth_of_the_items_is_original() {
        let items = columns(items());
        assert_eq!(items.len() as i64, ITEMS);
        let original = items.iter().filter(|i| i[4].contains("ORIGINAL")).count();
        assert!((9_500..10_500).contains(&original), "{original}");
        assert!(items.iter().all(|i| (26..=50).contains(&i[4].len())));
    }

    #[test]
    fn small_tables() {
        assert_eq!(columns(warehouses(3)).len(), 3);
        let districts = columns(districts(2));
        assert_eq!(districts.len(), 10);
        assert!(
            districts
                .iter()
                .all(|d| d.len() == 11 && d[1] == "2" && d[10] == "3001")
        );
    }
}
