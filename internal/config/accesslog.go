package config

import (
	"strings"

	"headgate/internal/accesslog"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// accessLog tells of a log that has no place to go to, and of fields that there are not.
func (ch *checker) accessLog(at schema.Place) {
	l := &ch.c.AccessLog
	if l.Path == "" && l.Enabled {
		at.Field("path").Problem("the path is empty", "write stdout, stderr or a file, or enabled: false")
	} else if strings.ContainsRune(l.Path, 0) {
		at.Field("path").Problem("the path contains a NUL", "remove it")
	}
	for i, name := range l.RequestHeaders {
		switch id := header.Lookup(name); {
		case !http1.ValidName(name):
			at.Field("request_headers").Index(i).Problem("invalid name", "write one like X-Tenant")
		case id == header.Cookie || id == header.Authorization || id == header.ProxyAuthorization:
			at.Field("request_headers").Index(i).Problem(name+" carries secrets", "remove it")
		}
	}
	known := accesslog.Omittable()
	for i, name := range l.Omit {
		found := false
		for _, other := range known {
			found = found || other == name
		}
		if !found {
			at.Field("omit").Index(i).Problemf("write one of "+strings.Join(known, ", "), "%q is no field that can be left out", name)
		}
	}
	for i, name := range l.RedactQuery {
		if plain := strings.TrimSuffix(name, "*"); plain == "" && name != "*" || strings.ContainsAny(plain, "*?&=;#% ") {
			at.Field("redact_query").Index(i).Problem("this is no name of a parameter", "write one like token, or x_*")
		}
	}
	if l.Format == "combined" {
		for _, f := range []struct {
			name string
			set  bool
		}{{"request_headers", len(l.RequestHeaders) > 0}, {"omit", len(l.Omit) > 0}} {
			if f.set {
				at.Field(f.name).Problem(f.name+" is only valid with format: json", "write format: json, or remove it")
			}
		}
	}
}
