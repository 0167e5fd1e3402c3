package sqlite

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// create runs SQL by SQLite itself and returns the file and its log. The program stays
// open while the files are read, so that the log is not written back.
func create(t *testing.T, sql string) (name string, data, wal []byte) {
	t.Helper()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("not run: sqlite3 is not installed")
	}
	name = filepath.Join(t.TempDir(), "test.sqlite")
	cmd := exec.Command(program, name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	go fmt.Fprintf(in, "%s\nSELECT 'all is done';\n", sql)
	var told []byte
	for buffer := make([]byte, 4096); !strings.Contains(string(told), "all is done"); {
		n, err := out.Read(buffer)
		if told = append(told, buffer[:n]...); err != nil {
			t.Fatalf("%v\n%s", err, told)
		}
	}
	if data, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	wal, _ = os.ReadFile(name + "-wal")
	return name, data, wal
}

// queryRows returns what SQLite itself reads.
func queryRows(t *testing.T, name, table string) []Row {
	t.Helper()
	out, err := exec.Command("sqlite3", "-json", name, "SELECT * FROM "+table+" ORDER BY rowid").Output()
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	if len(out) > 0 {
		if err := json.Unmarshal(out, &rows); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return rows
}

const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) `

func TestWhatSQLiteWrote(t *testing.T) {
	for name, sql := range map[string]string{
		"values":   "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INT, c REAL, d); INSERT INTO t VALUES (7, 'x', -5, 1.5, NULL), (9, 'é€', 9223372036854775807, -2.25, 'y'), (12, '', 0, 1, 1);",
		"integers": "CREATE TABLE t (a); INSERT INTO t VALUES (0),(1),(-1),(127),(-128),(128),(32767),(-32768),(8388607),(-8388608),(2147483647),(-2147483648),(140737488355327),(-140737488355328);",
		"many":     "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);" + fmt.Sprintf(numbers, 20000) + "INSERT INTO t SELECT i, 'row ' || i FROM n;",
		"long":     "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);" + fmt.Sprintf(numbers, 30) + "INSERT INTO t SELECT i, replace(hex(zeroblob(i*i*60)), '00', 'long ') FROM n;",
		"deleted":  "CREATE TABLE t (a TEXT);" + fmt.Sprintf(numbers, 3000) + "INSERT INTO t SELECT 'row ' || i FROM n; DELETE FROM t WHERE rowid % 3;",
		"added":    `CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('before'); ALTER TABLE t ADD COLUMN "b c" VARCHAR(9) NOT NULL DEFAULT 'it''s'; ALTER TABLE t ADD d INT DEFAULT -3; ALTER TABLE t ADD e DEFAULT (4.5); INSERT INTO t VALUES ('after', 'x', 1, 2);`,
		"keys":     "CREATE TABLE `t` (`id` integer not null primary key autoincrement, `domain_names` json not null, -- a comment\n [odd name] int, constraint c check (id > 0), unique (id, domain_names)); INSERT INTO t VALUES (3, '[\"a\"]', 1);",
		"pages":    "PRAGMA page_size = 65536; CREATE TABLE t (a); INSERT INTO t VALUES (1), (replace(hex(zeroblob(90000)), '00', 'z'));",
		"small":    "PRAGMA page_size = 512; CREATE TABLE t (a);" + fmt.Sprintf(numbers, 500) + "INSERT INTO t SELECT replace(hex(zeroblob(i)), '00', 'z') FROM n;",
		"utf16le":  "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('é€𝄞');",
		"utf16be":  "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('é€𝄞');",
		"empty":    "CREATE TABLE t (a);",
		"log":      "PRAGMA journal_mode = wal; CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t VALUES (1, 'one'); UPDATE t SET a = 'uno';" + fmt.Sprintf(numbers, 2000) + "INSERT INTO t SELECT i+1, 'row ' || i FROM n;",
		"mixed":    "PRAGMA journal_mode = wal; CREATE TABLE t (a TEXT);" + fmt.Sprintf(numbers, 2000) + "INSERT INTO t SELECT 'row ' || i FROM n; PRAGMA wal_checkpoint; UPDATE t SET a = 'changed' WHERE rowid = 1000; DELETE FROM t WHERE rowid > 1900;",
	} {
		t.Run(name, func(t *testing.T) {
			file, data, wal := create(t, sql)
			d, err := Open(data, wal)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Rows("T")
			if err != nil {
				t.Fatal(err)
			}
			want := queryRows(t, file, "t")
			if len(got) != len(want) {
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			for i := range want {
				for column, value := range want[i] {
					have, ok := got[i][strings.ToLower(column)]
					if number, is := value.(float64); is {
						if n, whole := have.(int64); whole {
							have = float64(n)
						}
						ok = ok && have == number
					} else {
						ok = ok && have == value
					}
					if !ok {
						t.Fatalf("row %d, column %s: got %#v, want %#v", i, column, have, value)
					}
				}
			}
		})
	}
}

// A transaction that was not committed is not seen.
func TestOpenTransactionsAreNotSeen(t *testing.T) {
	_, data, wal := create(t, "PRAGMA journal_mode = wal; PRAGMA cache_size = 1; CREATE TABLE t (a); INSERT INTO t VALUES (1); BEGIN;"+fmt.Sprintf(numbers, 9000)+"INSERT INTO t SELECT 'x' || i FROM n;")
	d, err := Open(data, wal)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := d.Rows("t"); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, want 1: %v", len(rows), err)
	}
	if rows, err := d.Rows("nobody"); rows != nil || err != nil {
		t.Errorf("%v %v", rows, err)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	_, data, _ := create(t, "CREATE TABLE t (a);"+fmt.Sprintf(numbers, 5000)+"INSERT INTO t SELECT 'row ' || i FROM n;")
	for name, broken := range map[string][]byte{
		"nothing":   nil,
		"text":      []byte(strings.Repeat("no database ", 100)),
		"cut off":   data[:len(data)/2],
		"header":    data[:100],
		"page size": append(append([]byte{}, data[:16]...), append([]byte{0, 3}, data[18:]...)...),
	} {
		d, err := Open(broken, nil)
		if err == nil {
			_, err = d.Rows("t")
		}
		if err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(append([]byte("SQLite format 3\x00\x02\x00\x01\x01\x00\x40\x20\x20"), make([]byte, 1000)...), []byte(nil))
	f.Fuzz(func(_ *testing.T, data, wal []byte) {
		d, err := Open(data, wal)
		if err != nil {
			return
		}
		for _, name := range d.Tables() {
			_, _ = d.Rows(name)
		}
	})
}
