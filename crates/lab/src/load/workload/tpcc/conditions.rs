//! The consistency conditions of clause 3.3.2, each as a query that counts what violates it.
//!
//! Conditions 1 to 10 and 12 hold at any time; 11 speaks of the initial database only and is left
//! out.

use super::Condition;
use crate::load::connection;
use crate::load::trouble::Result;
use crate::load::url::Target;

const CONDITIONS: &[(&str, &str)] = &[
    (
        "1: a warehouse's year to date is its districts' sum",
        "SELECT count(*) FROM warehouse JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) d \
         ON d_w_id = w_id WHERE w_ytd <> ytd",
    ),
    (
        "2: a district's next order follows its last, delivered or not",
        "SELECT count(*) FROM district \
         JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id) o \
         ON o_w_id = d_w_id AND o_d_id = d_id \
         LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id) n \
         ON no_w_id = d_w_id AND no_d_id = d_id \
         WHERE d_next_o_id - 1 <> last OR coalesce(newest, last) <> last",
    ),
    (
        "3: a district's undelivered orders are numbered without gaps",
        "SELECT count(*) FROM (SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id \
         HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) g",
    ),
    (
        "4: a district has as many lines as its orders say",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id) l \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE said <> coalesce(there, 0)",
    ),
    (
        "5: an order without carrier is a new order, and no other is",
        "SELECT count(*) FROM orders \
         LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
         WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "6: an order has as many lines as it says",
        "SELECT count(*) FROM orders \
         LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS there FROM order_line \
         GROUP BY ol_w_id, ol_d_id, ol_o_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_ol_cnt <> coalesce(there, 0)",
    ),
    (
        "7: a line is delivered when its order has a carrier",
        "SELECT count(*) FROM order_line \
         JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: a warehouse's year to date is its history's sum",
        "SELECT count(*) FROM warehouse \
         JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id \
         WHERE w_ytd <> paid",
    ),
    (
        "9: a district's year to date is its history's sum",
        "SELECT count(*) FROM district \
         JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h \
         ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> paid",
    ),
    (
        "10: a customer's balance is what was delivered less what was paid",
        "SELECT count(*) FROM customer \
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders \
         JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) d \
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history \
         GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
         WHERE c_balance <> coalesce(got, 0) - coalesce(paid, 0)",
    ),
    (
        "12: a customer's balance and payments are what was delivered",
        "SELECT count(*) FROM customer \
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders \
         JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) d \
         ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         WHERE c_balance + c_ytd_payment <> coalesce(got, 0)",
    ),
];

pub fn check(target: &Target) -> Result<Vec<Condition>> {
    connection::with(target, async |connection| {
        let mut checked = Vec::with_capacity(CONDITIONS.len());
        for (name, query) in CONDITIONS {
            connection.simple(query).await?;
            let violations = connection.rows().int(0, 0)?;
            let found = || format!("{violations} violations");
            checked.push(Condition::of(*name, violations == 0, found));
        }
        Ok(checked)
    })
}
