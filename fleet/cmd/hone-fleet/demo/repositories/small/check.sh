# Reports what this repository lacks to be published: one line for each file.
status=0
for file in README.md LICENSE CHANGELOG.md; do
	test -s "$file" || { echo "$file: is missing" && status=1; }
done
grep -q 2026 LICENSE || { echo "LICENSE: does not name this year, 2026" && status=1; }
exit $status
