//! The statements of the five transactions, in either dialect: their texts differ in
//! [`Book::change`] only.

use super::DISTRICTS;
use crate::load::dialect::Dialect;
use crate::load::sql::{Book, Change, Parts, Sql};

/// An order has 5 to 15 lines.
const MOST_LINES: usize = 15;
/// What of a line is a parameter: item, supplying warehouse, quantity, amount, district's
/// information.
pub const LINE_PARAMS: usize = 5;

pub struct Statements {
    pub begin: Sql,
    pub commit: Sql,
    pub rollback: Sql,

    pub order_customer: Sql,
    pub order_number: Change,
    pub order: Sql,
    pub new_order: Sql,
    pub item: Sql,
    /// By district: each reads its own column.
    pub stock: Vec<Change>,
    /// By the number of lines, from none.
    pub lines: Vec<Sql>,

    pub customer_by_name: Sql,
    pub pay_customer: Change,
    pub note_customer: Change,
    pub pay_district: Change,
    pub pay_warehouse: Change,
    pub history: Sql,

    pub customer_by_id: Sql,
    pub last_order: Sql,
    pub last_lines: Sql,

    pub oldest: Sql,
    pub take: Sql,
    pub deliver_order: Change,
    pub deliver_lines: Change,
    pub credit_customer: Sql,

    pub next_order: Sql,
    pub low_stock: Sql,
}

impl Statements {
    pub fn new(dialect: Dialect) -> Statements {
        let b = &mut Book::new(dialect);
        Statements {
            begin: b.statement("BEGIN"),
            commit: b.statement("COMMIT"),
            rollback: b.statement("ROLLBACK"),

            order_customer: b.query(
                "SELECT c_discount, c_last, c_credit, w_tax FROM warehouse, customer \
                 WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            ),
            order_number: b.change(&Parts {
                table: "district",
                set: "d_next_o_id = d_next_o_id + 1",
                key: "d_w_id = $1 AND d_id = $2",
                before: "d_next_o_id, d_tax",
                after: Some("d_next_o_id - 1, d_tax"),
            }),
            order: b.statement(
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES ($1, $2, $3, $4, localtimestamp, $5, $6)",
            ),
            new_order: b
                .statement("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)"),
            item: b.query("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1"),
            stock: (1..=DISTRICTS).map(|district| stock(b, district)).collect(),
            lines: (0..=MOST_LINES).map(|count| b.statement(&lines(count))).collect(),

            customer_by_name: b.query(
                "SELECT c_id, c_balance, c_first, c_middle FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            ),
            pay_customer: b.change(&Parts {
                table: "customer",
                set: "c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
                      c_payment_cnt = c_payment_cnt + 1",
                key: CUSTOMER,
                before: &paying_customer("c_balance - $4"),
                after: Some(&paying_customer("c_balance")),
            }),
            note_customer: b.change(&Parts {
                table: "customer",
                set: "c_data = substr($4 || c_data, 1, 500)",
                key: CUSTOMER,
                before: "substr($4 || c_data, 1, 200)",
                after: Some("substr(c_data, 1, 200)"),
            }),
            pay_district: b.change(&Parts {
                table: "district",
                set: "d_ytd = d_ytd + $3",
                key: "d_w_id = $1 AND d_id = $2",
                before: "d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
                after: None,
            }),
            pay_warehouse: b.change(&Parts {
                table: "warehouse",
                set: "w_ytd = w_ytd + $2",
                key: "w_id = $1",
                before: "w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
                after: None,
            }),
            history: b.statement(
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES ($1, $2, $3, $4, $5, localtimestamp, $6, $7)",
            ),

            customer_by_id: b.query(
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            ),
            last_order: b.query(
                "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders \
                 WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
            ),
            last_lines: b.query(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            ),

            oldest: b.query(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
            ),
            take: b.statement(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
            ),
            deliver_order: b.change(&Parts {
                table: "orders",
                set: "o_carrier_id = $4",
                key: "o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
                before: "o_c_id",
                after: None,
            }),
            deliver_lines: b.change(&Parts {
                table: "order_line",
                set: "ol_delivery_d = localtimestamp",
                key: "ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
                before: "ol_amount",
                after: None,
            }),
            credit_customer: b.statement(
                "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            ),

            next_order: b
                .query("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2"),
            low_stock: b.query(
                "SELECT count(DISTINCT s_i_id) FROM order_line, stock \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 \
                 AND s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $5",
            ),
        }
    }
}

const CUSTOMER: &str = "c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

/// What a payment shows of its customer, credit first.
fn paying_customer(balance: &str) -> String {
    format!(
        "c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
         c_phone, c_since, c_credit_lim, c_discount, {balance}"
    )
}

/// Takes from the stock, and fills it up when it would fall below ten (clause 2.4.2.2). Quantity, 1
/// if the order is remote and 0 otherwise, warehouse, item.
fn stock(book: &mut Book, district: i64) -> Change {
    let left = "CASE WHEN s_quantity >= $1 + 10 THEN s_quantity - $1 ELSE s_quantity - $1 + 91 END";
    book.change(&Parts {
        table: "stock",
        set: &format!(
            "s_quantity = {left}, s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + $2"
        ),
        key: "s_w_id = $3 AND s_i_id = $4",
        before: &format!("{left}, s_dist_{district:02}, s_data"),
        after: Some(&format!("s_quantity, s_dist_{district:02}, s_data")),
    })
}

/// All lines of an order by one statement: order, district and warehouse, then [`LINE_PARAMS`] a
/// line.
fn lines(count: usize) -> String {
    let row = |line: usize| {
        let first = 4 + line * LINE_PARAMS;
        let params: Vec<String> = (first..first + LINE_PARAMS)
            .map(|n| format!("${n}"))
            .collect();
        format!("($1, $2, $3, {}, {})", line + 1, params.join(", "))
    };
    let rows: Vec<String> = (0..count).map(row).collect();
    format!(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
         ol_amount, ol_dist_info) VALUES {}",
        rows.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orders_lines_are_one_statement() {
        assert!(lines(2).ends_with(
            "VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8), ($1, $2, $3, 2, $9, $10, $11, $12, $13)"
        ));
        let statements = Statements::new(Dialect::Postgres);
        assert_eq!(statements.lines[15].params(), 3 + 15 * LINE_PARAMS);
        let Change::Returning(stock) = &statements.stock[9] else {
            panic!("one statement");
        };
        assert!(stock.text().ends_with(
            "WHERE s_w_id = $3 AND s_i_id = $4 RETURNING s_quantity, s_dist_10, s_data"
        ));
    }
}
