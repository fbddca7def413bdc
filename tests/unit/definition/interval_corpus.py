"""Trigger intervals; `tests/integration/spark/test_sql_check_agrees.py` asks Spark itself about each."""

from __future__ import annotations

ACCEPTED = [
    *("1 second", "500 milliseconds", "1 minute 30 seconds", "interval 1 second", "INTERVAL 1 SECOND"),
    *("interval\t1 second", "1.5 seconds", ".5 second", "1. second", "0 seconds", "-0 seconds", "1 day"),
    *("2 WEEKS", " 1  second ", "1 \n second", "500 microseconds", "+1 second", "+ 1 second"),
    *("1 minute -30 seconds", "-1 second 2 seconds", "-0.5 second 1 second", "1 minutes 1 minutes"),
    *("0 month 1 second", "12 month -1 year 1 second", "20000 weeks", "106751991 days"),
    *("9223372036854775807 microseconds", "0.123456789 seconds"),
]

REFUSED = [
    *("", " ", "1", "second", "1second", "1 sec", "1 s", "1 ms", "1 millis", "1 nanosecond", "1 min"),
    *("1 minute,30 seconds", "1 second;", "1e3 seconds", "1-1 second", "+-1 second", "interval"),
    *("interval 1", "interval1 second", "interval interval 1 second", "1 second interval"),
    *("interval '1' second", "1.5 minutes", "0.9 microseconds", "0.1234567891 seconds", ". second"),
    *("-1 second", "- 1 second", "1 second -2 seconds", "1 month", "1 year", "106751992 days"),
    *("106751991 days 8 hours", "99999999999999999999 seconds"),
]
