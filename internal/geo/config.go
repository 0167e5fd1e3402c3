package geo

import (
	"headgate/internal/schema"
	"headgate/internal/server/download"
	"headgate/internal/setting/unit"
)

// Config are the databases that map addresses to countries and to networks. headgate ships
// no data: specify a file in the MMDB format, such as DB-IP Lite, IPinfo Lite or GeoLite2,
// or the URL of one.
type Config struct {
	// Country is the database of countries. With it, settings may refer to country:DE, and
	// {country} is a variable.
	Country Source `json:"country"`
	// ASN is the database of networks by number. With it, settings may refer to asn:64500,
	// and {asn} is a variable. It may be the same file as that of countries.
	ASN Source `json:"asn"`
}

// Source is where a database comes from: a file or a URL.
type Source struct {
	// File is a file in the MMDB format. A relative path begins at the configuration file.
	// It is read again when it changes.
	File string `json:"file,omitempty" host:"admin" max:"4096" example:"/usr/share/GeoIP/country.mmdb"`
	// URL is where the database is downloaded from, with https; it can be compressed with
	// gzip. The last valid one is kept in the state directory.
	URL string `json:"url,omitempty" host:"admin" max:"2048" example:"https://lists.example.com/country.mmdb.gz"`
	// Interval is how often the database at url is downloaded.
	Interval unit.Duration `json:"interval" default:"168h" min:"1h" max:"2160h"`
}

// Set reports whether there is a database.
func (s *Source) Set() bool { return s.File != "" || s.URL != "" }

// Set reports whether there is any database.
func (c *Config) Set() bool { return c.Country.Set() || c.ASN.Set() }

// Check reports what is wrong with the settings at at.
func (c *Config) Check(at schema.Place) {
	c.Country.check(at.Field("country"))
	c.ASN.check(at.Field("asn"))
}

func (s *Source) check(at schema.Place) {
	if s.File != "" && s.URL != "" {
		at.Problem("the database has both file and url", "keep one of them")
	}
	if s.URL != "" {
		if what, remedy := download.Check(s.URL); what != "" {
			at.Field("url").Problem(what, remedy)
		}
	}
}
