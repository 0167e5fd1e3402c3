package config

import (
	"slices"

	"headgate/internal/certs"
	"headgate/internal/schema"
)

// reservedCertificates are names that paths of the API have for something else.
var reservedCertificates = []string{"chosen", "self_signed", "upload"}

// certificate reports a certificate without a source, or with two.
func (ch *checker) certificate(c *Certificate, at schema.Place) {
	const both = "name two files, cert_file and key_file, or a stored certificate"
	switch {
	case slices.Contains(reservedCertificates, c.Name):
		at.Problem("the API reserves this name", "give the certificate another name")
	case c.Stored != "" && (c.CertFile != "" || c.KeyFile != ""):
		at.Field("stored").Problem("it is in files already", both)
	case c.Stored != "" && !certs.CheckStoredName(c.Stored):
		at.Field("stored").Problemf("use lower-case letters, digits and hyphens", "invalid name %q", c.Stored)
	case c.Stored != "":
	case c.CertFile == "":
		at.Field("cert_file").Problem("missing", both)
	case c.KeyFile == "":
		at.Field("key_file").Problem("missing", both)
	}
}
