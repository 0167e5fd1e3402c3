// Command convert makes a database of countries in the MMDB format from files with lines
// START,END,COUNTRY:
//
//	convert -out country.mmdb -type asn-country -built 2026-06-17 ipv4.csv ipv6.csv
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"headgate/internal/geo/geotest"
)

func main() {
	out := flag.String("out", "country.mmdb", "the file to write")
	kind := flag.String("type", "country", "the type of the database")
	built := flag.String("built", "", "the day on which its data was collected, such as 2026-06-17")
	flag.Parse()
	if err := convert(*out, *kind, *built, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

// convert writes a database with the networks of all files.
func convert(out, kind, built string, files []string) error {
	day, err := time.Parse(time.DateOnly, built)
	if err != nil {
		return err
	}
	var all []geotest.Network
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		networks, err := geotest.ReadCSV(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, networks...)
	}
	return os.WriteFile(out, geotest.Write(kind, day, all...), 0o644)
}
