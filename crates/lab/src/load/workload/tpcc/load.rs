//! Makes the nine tables (clause 1.3) and fills them, several parts at a time. Keys and indexes
//! come afterwards, or keys first where the server keeps its rows in them: parts are in their
//! order.

use std::cell::{Cell, RefCell};

use super::population::{self, Lines};
use crate::load::connection::{self, Connection};
use crate::load::reactor::{Reactor, Task};
use crate::load::sql::Mode;
use crate::load::trouble::Result;
use crate::load::url::Target;

/// Parts at once: more than any small server has cores, so that it is never idle between two.
const AT_ONCE: usize = 4;

const TABLES: &[&str] = &[
    "CREATE TABLE warehouse (w_id int not null, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
     w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2))",
    "CREATE TABLE district (d_id int not null, d_w_id int not null, d_name varchar(10), d_street_1 varchar(20), \
     d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), \
     d_ytd numeric(12,2), d_next_o_id int)",
    "CREATE TABLE customer (c_id int not null, c_d_id int not null, c_w_id int not null, c_first varchar(16), \
     c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), \
     c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, c_credit char(2), \
     c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), \
     c_payment_cnt int, c_delivery_cnt int, c_data varchar(500))",
    "CREATE TABLE history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, \
     h_amount numeric(6,2), h_data varchar(24))",
    "CREATE TABLE new_order (no_o_id int not null, no_d_id int not null, no_w_id int not null)",
    "CREATE TABLE orders (o_id int not null, o_d_id int not null, o_w_id int not null, o_c_id int, \
     o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, o_all_local int)",
    "CREATE TABLE order_line (ol_o_id int not null, ol_d_id int not null, ol_w_id int not null, \
     ol_number int not null, ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamp, ol_quantity int, \
     ol_amount numeric(6,2), ol_dist_info char(24))",
    "CREATE TABLE item (i_id int not null, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50))",
    "CREATE TABLE stock (s_i_id int not null, s_w_id int not null, s_quantity int, s_dist_01 char(24), \
     s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), \
     s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, \
     s_remote_cnt int, s_data varchar(50))",
];

const KEYS: &[&str] = &[
    "ALTER TABLE warehouse ADD PRIMARY KEY (w_id)",
    "ALTER TABLE district ADD PRIMARY KEY (d_w_id, d_id)",
    "ALTER TABLE customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id)",
    "ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id)",
    "ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    "ALTER TABLE item ADD PRIMARY KEY (i_id)",
    "ALTER TABLE stock ADD PRIMARY KEY (s_w_id, s_i_id)",
];

const INDEXES: &[&str] = &[
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

const NAMES: &[&str] = &[
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "item",
    "stock",
];

pub fn load(target: &Target, warehouses: i64, say: &dyn Fn(&str)) -> Result<()> {
    let dialect = target.dialect;
    let mut create: Vec<String> = NAMES
        .iter()
        .map(|t| format!("DROP TABLE IF EXISTS {t}"))
        .collect();
    create.extend(TABLES.iter().map(|t| dialect.create_table(t)));
    let keys = KEYS.iter().map(|key| (*key).to_owned());
    let (before, after): (Vec<String>, Vec<String>) = match dialect.keys_come_first() {
        true => (keys.collect(), Vec::new()),
        false => (Vec::new(), keys.collect()),
    };
    create.extend(before);
    let now = connection::with(target, async |connection| {
        for statement in &create {
            connection.simple(statement).await?;
        }
        connection.simple("SELECT localtimestamp(0)").await?;
        let now = connection.rows().string(0, 0)?.to_owned();
        Ok(now)
    })?;
    let mut parts: Vec<(&str, Lines<'_>)> = vec![
        ("warehouse", population::warehouses(warehouses)),
        ("item", population::items()),
    ];
    for warehouse in 1..=warehouses {
        parts.push(("stock", population::stock(warehouse)));
        parts.push(("order_line", population::order_lines(warehouse, &now)));
        parts.push(("customer", population::customers(warehouse, &now)));
        parts.push(("orders", population::orders(warehouse, &now)));
        parts.push(("history", population::histories(warehouse, &now)));
        parts.push(("new_order", population::new_orders(warehouse)));
        parts.push(("district", population::districts(warehouse)));
    }
    let of = parts.len();
    let done = Cell::new(0);
    each(target, parts, async |connection, (table, mut lines)| {
        connection.fill(table, |out| lines(out)).await?;
        done.set(done.get() + 1);
        say(&format!(
            "{warehouses} warehouses: {} of {of} parts",
            done.get()
        ));
        Ok(())
    })?;
    say("keys and indexes");
    let mut indexes = after;
    indexes.extend(INDEXES.iter().map(|index| (*index).to_owned()));
    each(target, indexes, simply)?;
    let analyses = NAMES.iter().map(|table| dialect.analyze(table));
    each(target, analyses.collect(), simply)
}

async fn simply(connection: &mut Connection, statement: String) -> Result<()> {
    connection.simple(&statement).await.map(|_| ())
}

/// Does `work` with each of `things`, on several connections, until all are done; the first failure
/// is the result.
fn each<T>(
    target: &Target,
    things: Vec<T>,
    work: impl AsyncFn(&mut Connection, T) -> Result<()>,
) -> Result<()> {
    let things = RefCell::new(things.into_iter());
    let next = || things.borrow_mut().next();
    let reactor = Reactor::new()?;
    let failed = RefCell::new(None);
    let tasks = (0..AT_ONCE).map(|_| -> Task<'_> {
        let (reactor, failed, work, next) = (&reactor, &failed, &work, &next);
        Box::pin(async move {
            let worked = async {
                let mut connection = Connection::open(reactor, target, Mode::Simple).await?;
                while let Some(thing) = next() {
                    work(&mut connection, thing).await?;
                }
                connection.close().await;
                Ok(())
            };
            if let Err(e) = worked.await {
                failed.borrow_mut().get_or_insert(e);
            }
        })
    });
    reactor.run(tasks.collect(), None)?;
    failed.into_inner().map_or(Ok(()), Err)
}
