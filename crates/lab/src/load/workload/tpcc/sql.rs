//! The statements of the five transactions.

use super::DISTRICTS;
use crate::load::sql::{Book, Sql};

/// An order has 5 to 15 lines.
const MOST_LINES: usize = 15;
/// What of a line is a parameter: item, supplying warehouse, quantity, amount, district's information.
pub const LINE_PARAMS: usize = 5;

pub struct Statements {
    pub begin: Sql,
    pub commit: Sql,
    pub rollback: Sql,

    pub order_customer: Sql,
    pub order_number: Sql,
    pub order: Sql,
    pub new_order: Sql,
    pub item: Sql,
    /// By district: each reads its own column.
    pub stock: Vec<Sql>,
    /// By the number of lines, from none.
    pub lines: Vec<Sql>,

    pub customer_by_name: Sql,
    pub pay_customer: Sql,
    pub note_customer: Sql,
    pub pay_district: Sql,
    pub pay_warehouse: Sql,
    pub history: Sql,

    pub customer_by_id: Sql,
    pub last_order: Sql,
    pub last_lines: Sql,

    pub oldest: Sql,
    pub take: Sql,
    pub deliver_order: Sql,
    pub deliver_lines: Sql,
    pub credit_customer: Sql,

    pub next_order: Sql,
    pub low_stock: Sql,
}

impl Statements {
    pub fn new() -> Statements {
        let b = &mut Book::new();
        Statements {
            begin: b.statement("BEGIN"),
            commit: b.statement("COMMIT"),
            rollback: b.statement("ROLLBACK"),

            order_customer: b.query(
                "SELECT c_discount, c_last, c_credit, w_tax FROM warehouse, customer \
                 WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            ),
            order_number: b.query(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
                 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
            ),
            order: b.statement(
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES ($1, $2, $3, $4, localtimestamp, $5, $6)",
            ),
            new_order: b
                .statement("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)"),
            item: b.query("SELECT i_price, i_name, i_data FROM item WHERE i_id = $1"),
            stock: (1..=DISTRICTS).map(|district| b.query(&stock(district))).collect(),
            lines: (0..=MOST_LINES).map(|count| b.statement(&lines(count))).collect(),

            customer_by_name: b.query(
                "SELECT c_id, c_balance, c_first, c_middle FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
            ),
            pay_customer: b.query(
                "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
                 RETURNING c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                 c_phone, c_since, c_credit_lim, c_discount, c_balance",
            ),
            note_customer: b.query(
                "UPDATE customer SET c_data = substr($4 || c_data, 1, 500) \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 RETURNING substr(c_data, 1, 200)",
            ),
            pay_district: b.query(
                "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            ),
            pay_warehouse: b.query(
                "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
                 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            ),
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
            deliver_order: b.query(
                "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 \
                 RETURNING o_c_id",
            ),
            deliver_lines: b.query(
                "UPDATE order_line SET ol_delivery_d = localtimestamp \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount",
            ),
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

/// Takes from the stock, and fills it up when it would fall below ten (clause 2.4.2.2). Quantity, 1 if the order is
/// remote and 0 otherwise, warehouse, item.
fn stock(district: i64) -> String {
    format!(
        "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= $1 + 10 THEN s_quantity - $1 \
         ELSE s_quantity - $1 + 91 END, s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + $2 WHERE s_w_id = $3 AND s_i_id = $4 \
         RETURNING s_quantity, s_dist_{district:02}, s_data"
    )
}

/// All lines of an order by one statement: order, district and warehouse, then [`LINE_PARAMS`] a line.
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
        let statements = Statements::new();
        assert_eq!(statements.lines[15].params(), 3 + 15 * LINE_PARAMS);
        assert!(statements.stock[9].text().contains("s_dist_10"));
    }
}
