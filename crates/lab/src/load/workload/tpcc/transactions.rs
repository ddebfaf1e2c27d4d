//! The five transactions as their profiles say (clauses 2.4.2, 2.5.2, 2.6.2, 2.7.4, 2.8.2), each in
//! one database transaction.

use super::input::{DistrictId, Input, Line, Who};
use super::sql::{LINE_PARAMS, Statements};
use super::{DISTRICTS, ITEMS};
use crate::load::connection::Connection;
use crate::load::sql::Arg;
use crate::load::trouble::{Result, Trouble};
use crate::load::workload::{Done, Link};

/// How many of a district's last orders Stock-Level looks at.
const LAST_ORDERS: i64 = 20;

pub async fn run(
    sql: &Statements,
    input: &Input,
    home: DistrictId,
    link: &mut Link,
) -> Result<Done> {
    let at = At {
        sql,
        warehouse: home.warehouse,
        connection: link.connection().await?,
    };
    match input {
        Input::NewOrder {
            district,
            customer,
            lines,
        } => at.new_order(*district, *customer, lines).await,
        Input::Payment {
            district,
            at: place,
            who,
            amount,
        } => at.payment(*district, *place, who, *amount).await,
        Input::OrderStatus { district, who } => at.order_status(*district, who).await,
        Input::Delivery { carrier } => at.delivery(*carrier).await,
        Input::StockLevel { threshold } => at.stock_level(home.district, *threshold).await,
    }
}

/// A terminal's connection, at its warehouse.
struct At<'a> {
    sql: &'a Statements,
    warehouse: i64,
    connection: &'a mut Connection,
}

/// What a line of an order costs and where it comes from.
struct Priced {
    /// Cents.
    amount: i64,
    information: String,
}

impl At<'_> {
    async fn new_order(mut self, district: i64, customer: i64, lines: &[Line]) -> Result<Done> {
        let (sql, warehouse) = (self.sql, self.warehouse);
        let [w, d, c] = [warehouse, district, customer].map(Arg::Int);
        let connection = &mut self.connection;
        connection.run(&sql.begin, &[]).await?;
        connection.run(&sql.order_customer, &[w, d, c]).await?;
        one(connection, "customer")?;
        connection.change(&sql.order_number, &[w, d]).await?;
        one(connection, "district")?;
        let order = Arg::Int(connection.rows().int(0, 0)?);
        let all_local = lines.iter().all(|l| l.warehouse == warehouse);
        let counts = [Arg::Int(lines.len() as i64), Arg::Int(i64::from(all_local))];
        connection
            .run(&sql.order, &[order, d, w, c, counts[0], counts[1]])
            .await?;
        connection.run(&sql.new_order, &[order, d, w]).await?;
        let mut priced = Vec::with_capacity(lines.len());
        for line in lines {
            match self.line(district, line).await? {
                Some(price) => priced.push(price),
                None => {
                    self.connection.run(&sql.rollback, &[]).await?;
                    return Ok(Done::RolledBack);
                }
            }
        }
        let mut args = Vec::with_capacity(3 + lines.len() * LINE_PARAMS);
        args.extend([order, d, w]);
        for (line, priced) in lines.iter().zip(&priced) {
            args.extend([line.item, line.warehouse, line.quantity].map(Arg::Int));
            args.extend([Arg::Cents(priced.amount), Arg::Text(&priced.information)]);
        }
        self.connection.run(&sql.lines[lines.len()], &args).await?;
        self.commit().await
    }

    /// Reads the item and takes it from the stock. Nothing if there is no such item.
    async fn line(&mut self, district: i64, line: &Line) -> Result<Option<Priced>> {
        let connection = &mut self.connection;
        connection
            .run(&self.sql.item, &[Arg::Int(line.item)])
            .await?;
        if connection.rows().is_empty() && line.item > ITEMS {
            return Ok(None);
        }
        one(connection, "item")?;
        let price = connection.rows().cents(0, 0)?;
        let remote = i64::from(line.warehouse != self.warehouse);
        let args = [line.quantity, remote, line.warehouse, line.item].map(Arg::Int);
        connection
            .change(&self.sql.stock[district as usize - 1], &args)
            .await?;
        one(connection, "stock")?;
        let information = connection.rows().string(0, 1)?.to_owned();
        Ok(Some(Priced {
            amount: price * line.quantity,
            information,
        }))
    }

    async fn payment(
        mut self,
        district: i64,
        at: DistrictId,
        who: &Who,
        amount: i64,
    ) -> Result<Done> {
        let sql = self.sql;
        self.connection.run(&sql.begin, &[]).await?;
        let customer = match who {
            Who::Id(id) => *id,
            Who::Last(name) => self.middle_customer(at, name).await?,
        };
        let connection = &mut self.connection;
        let [w, d, cw, cd, c] = [
            self.warehouse,
            district,
            at.warehouse,
            at.district,
            customer,
        ]
        .map(Arg::Int);
        let cents = Arg::Cents(amount);
        connection
            .change(&sql.pay_customer, &[cw, cd, c, cents])
            .await?;
        one(connection, "customer")?;
        if connection.rows().string(0, 0)? == "BC" {
            let note = format!(
                "{customer} {} {} {district} {} {}.{:02}|",
                at.district,
                at.warehouse,
                self.warehouse,
                amount / 100,
                amount % 100
            );
            connection
                .change(&sql.note_customer, &[cw, cd, c, Arg::Text(&note)])
                .await?;
            one(connection, "customer")?;
        }
        connection.change(&sql.pay_district, &[w, d, cents]).await?;
        one(connection, "district")?;
        let district_name = connection.rows().string(0, 0)?.to_owned();
        connection.change(&sql.pay_warehouse, &[w, cents]).await?;
        one(connection, "warehouse")?;
        let data = format!("{}    {district_name}", connection.rows().string(0, 0)?);
        connection
            .run(&sql.history, &[c, cd, cw, d, w, cents, Arg::Text(&data)])
            .await?;
        self.commit().await
    }

    /// The one in the middle of those of that name, by first name (clause 2.5.2.2).
    async fn middle_customer(&mut self, at: DistrictId, name: &str) -> Result<i64> {
        let args = [
            Arg::Int(at.warehouse),
            Arg::Int(at.district),
            Arg::Text(name),
        ];
        self.connection
            .run(&self.sql.customer_by_name, &args)
            .await?;
        let rows = self.connection.rows();
        match rows.len() {
            0 => Err(Trouble::wrong(format!("no customer {name} in {at:?}"))),
            count => rows.int(count.div_ceil(2) - 1, 0),
        }
    }

    async fn order_status(mut self, district: i64, who: &Who) -> Result<Done> {
        let sql = self.sql;
        self.connection.run(&sql.begin, &[]).await?;
        let place = DistrictId {
            warehouse: self.warehouse,
            district,
        };
        let [w, d] = [self.warehouse, district].map(Arg::Int);
        let customer = match who {
            Who::Last(name) => self.middle_customer(place, name).await?,
            Who::Id(id) => {
                self.connection
                    .run(&sql.customer_by_id, &[w, d, Arg::Int(*id)])
                    .await?;
                one(self.connection, "customer")?;
                *id
            }
        };
        let connection = &mut self.connection;
        connection
            .run(&sql.last_order, &[w, d, Arg::Int(customer)])
            .await?;
        one(connection, "order")?;
        let order = connection.rows().int(0, 0)?;
        let said = connection.rows().int(0, 3)?;
        let lines = connection
            .run(&sql.last_lines, &[w, d, Arg::Int(order)])
            .await?;
        if lines.rows as i64 != said {
            return Err(Trouble::wrong(format!(
                "{} lines of an order of {said}",
                lines.rows
            )));
        }
        self.commit().await
    }

    async fn delivery(mut self, carrier: i64) -> Result<Done> {
        self.connection.run(&self.sql.begin, &[]).await?;
        for district in 1..=DISTRICTS {
            self.deliver(district, carrier).await?;
        }
        self.commit().await
    }

    /// Delivers a district's oldest order that is not delivered yet, if there is one.
    async fn deliver(&mut self, district: i64, carrier: i64) -> Result<()> {
        let sql = self.sql;
        let connection = &mut self.connection;
        let [w, d] = [self.warehouse, district].map(Arg::Int);
        let order = loop {
            connection.run(&sql.oldest, &[w, d]).await?;
            if connection.rows().is_empty() {
                return Ok(());
            }
            let order = Arg::Int(connection.rows().int(0, 0)?);
            // Another delivery may have taken it between the two statements: then there is a new
            // oldest.
            if connection.run(&sql.take, &[w, d, order]).await?.affected == 1 {
                break order;
            }
        };
        connection
            .change(&sql.deliver_order, &[w, d, order, Arg::Int(carrier)])
            .await?;
        one(connection, "order")?;
        let customer = Arg::Int(connection.rows().int(0, 0)?);
        connection
            .change(&sql.deliver_lines, &[w, d, order])
            .await?;
        let rows = connection.rows();
        let mut sum = 0;
        for row in 0..rows.len() {
            sum += rows.cents(row, 0)?;
        }
        let credited = connection
            .run(&sql.credit_customer, &[w, d, customer, Arg::Cents(sum)])
            .await?;
        match credited.affected {
            1 => Ok(()),
            count => Err(Trouble::wrong(format!("{count} customers of an order"))),
        }
    }

    async fn stock_level(mut self, district: i64, threshold: i64) -> Result<Done> {
        let sql = self.sql;
        let connection = &mut self.connection;
        let [w, d] = [self.warehouse, district].map(Arg::Int);
        connection.run(&sql.begin, &[]).await?;
        connection.run(&sql.next_order, &[w, d]).await?;
        one(connection, "district")?;
        let next = connection.rows().int(0, 0)?;
        let [from, to, threshold] = [next - LAST_ORDERS, next, threshold].map(Arg::Int);
        connection
            .run(&sql.low_stock, &[w, d, from, to, threshold])
            .await?;
        one(connection, "count")?;
        self.commit().await
    }

    async fn commit(self) -> Result<Done> {
        self.connection.run(&self.sql.commit, &[]).await?;
        Ok(Done::Committed)
    }
}

fn one(connection: &Connection, what: &str) -> Result<()> {
    match connection.rows().len() {
        1 => Ok(()),
        count => Err(Trouble::wrong(format!(
            "{count} rows where one {what} was expected"
        ))),
    }
}
