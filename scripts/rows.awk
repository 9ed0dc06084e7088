# The rows of the fault tables (F, R, S, B, D) that a test's name or comment has, each with the test.
FNR == 1 { comment = "" }
/^\/\// { comment = comment " " $0; next }
/^func (Test|Fuzz|Benchmark|Example)/ {
	name = $2; sub(/\(.*/, "", name)
	text = comment " " name
	while (match(text, /(^|[^A-Za-z0-9])?(Test)?[FRSBD][0-9][0-9]+/)) {
		row = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
		sub(/^.*[^FRSBD0-9]/, "", row)
		if (text !~ /^[a-z0-9]/ && !seen[row, FILENAME, name]++) print row "\t" FILENAME "\t" name
	}
}
{ comment = "" }
