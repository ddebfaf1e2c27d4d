"""The splitter's own tests: what is a statement, and which output belongs to it."""

import unittest

import script


def cut(source, expected):
    return [(s.text, s.output) for s in script.cut(source.strip("\n").split("\n"), expected.strip("\n").split("\n"))]


class Splitting(unittest.TestCase):
    def test_output_stands_behind_the_lines_of_its_statement(self):
        self.assertEqual(
            cut("-- first\nselect 1\n\n  as a;\nselect 2; select 3;", "-- first\nselect 1\n  as a;\n1\nselect 2; select 3;\n2\n3"),
            [("select 1\n\n  as a;".replace("\n\n", "\n"), ["1"]), ("select 2;\nselect 3;", ["2", "3"])])

    def test_quotes_dollars_comments_and_parentheses_hide_semicolons(self):
        source = "select 'a;\nb' /* ; /* ; */\n; */, $x$;\n$$;$x$, \"c;d\", E'\\';';\ncreate rule r as on insert to t do (select 1;\nselect 2);"
        self.assertEqual([len(output) for _, output in cut(source, source)], [0, 0])

    def test_empty_lines_in_a_quote_are_printed(self):
        self.assertEqual([output for _, output in cut("select 'a\n\nb';\nselect 1;", "select 'a\n\nb';\nx\nselect 1;")], [["x"], []])

    def test_the_body_of_an_sql_function_holds_semicolons(self):
        source = "create or replace function f() returns int begin atomic select case when true then 1 end;\nselect 2; end;\nselect 1;"
        self.assertEqual(len(cut(source, source)), 2)

    def test_data_of_copy_is_not_printed_but_for_a_copy_that_failed(self):
        source = "copy t from stdin;\n1\n2\n\\.\nselect 1;"
        self.assertEqual(cut(source, "copy t from stdin;\nselect 1;\n1"), [("copy t from stdin;", []), ("select 1;", ["1"])])
        self.assertEqual(cut("copy t from stdin;\nselect 1;\ncopy u from stdin;\n1\n\\.", "copy t from stdin;\nERROR\nselect 1;\n1\ncopy u from stdin;"),
                         [("copy t from stdin;", ["ERROR"]), ("select 1;", ["1"]), ("copy u from stdin;", [])])

    def test_comments_behind_the_last_statement_are_none_of_its_output(self):
        self.assertEqual(cut("select 1;\n-- the end", "select 1;\n1\n-- the end"), [("select 1;", ["1"]), ("", [])])

    def test_backslash_commands_send_or_stand_alone(self):
        source = "select 1 \\gset\n\\echo :x\nselect 2 \\bind 1 \\g\n\\d t"
        self.assertEqual(len(cut(source, source)), 4)

    def test_a_statement_that_an_output_lacks_takes_none_from_its_neighbours(self):
        statements = script.cut(["a;", "b;", "c;"], ["a;", "1", "b;", "2", "c;", "3"])
        self.assertEqual([s.output for s in script.locate(statements, ["a;", "1", "c;", "3"])], [["1"], None, ["3"]])


if __name__ == "__main__":
    unittest.main(verbosity=0)
