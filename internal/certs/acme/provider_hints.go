package acme

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// noZone is the error of an account that does not have a zone.
func noZone(zone, text string) error {
	return &statusError{http.StatusNotFound, "zone " + zone + ": " + text}
}

// credentialWords are texts of APIs about credentials that are wrong or expired, in
// responses whose status does not show it.
var credentialWords = []string{
	"Invalid API key", "Invalid API Key", "API Key is invalid or API access has not been enabled", // Porkbun, Namecheap
	"Invalid format for Authorization header", "Invalid access token", "Authentication error", // Cloudflare
	"INVALID_CREDENTIAL", "NOT_CREDENTIAL", "INVALID_KEY", "This application key is invalid", "This credential is not valid", "Invalid signature", // OVH
	"InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "UnrecognizedClientException", // AWS
	"invalid_grant", // Google
	"BADKEY", "BADSIG",
}

// clockWords are what APIs write about a clock that is wrong.
var clockWords = []string{"RequestExpired", "RequestTimeTooSkewed", "QUERY_TIME_OUT", "BADTIME"}

// zoneWords are what APIs write about a zone that is not theirs.
var zoneWords = []string{"NOTZONE", "NOTAUTH", "Could not route to /zones", "Invalid domain"}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// hintFor returns how to fix an error of a provider.
func hintFor(err error, d *DNS, zone string) string {
	says := func(words []string) bool { return containsAny(err.Error(), words) }
	status := 0
	var s *statusError
	if errors.As(err, &s) {
		status = s.status
	}
	if zone == "" {
		zone = "of the record"
	}
	switch {
	case errors.Is(err, errRefused):
		return "correct dns in the entry"
	case says(clockWords):
		return "the clock of this machine is wrong: set it, by NTP for instance"
	case says(credentialWords) || status == http.StatusUnauthorized:
		return fmt.Sprintf("the credentials are wrong, have expired or were revoked: make new ones at %s and write them under dns: {credentials: …}", d.Provider)
	case says(zoneWords) || status == http.StatusNotFound:
		return fmt.Sprintf("the account of the credentials has no zone %s: use the credentials of the account that has it, or name the right zone with dns: {zone: …}", zone)
	case status == http.StatusForbidden || says([]string{"REFUSED"}):
		return fmt.Sprintf("the credentials may not change zone %s: give them the permission to edit its records, or use those of the account that has it", zone)
	case status == http.StatusTooManyRequests:
		return "the provider limits requests; headgate will try again"
	case status >= http.StatusInternalServerError:
		return "the provider has an internal error; headgate will try again"
	}
	return "check the credentials, and that they may write to the zone " + zone
}
