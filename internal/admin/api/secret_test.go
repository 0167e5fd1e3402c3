package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// TestCredentialsAreShownToNobody reads what an acme entry has for its DNS provider: the
// names, and the mask in place of each value. The mask written back leaves them.
func TestCredentialsAreShownToNobody(t *testing.T) {
	h := start(t)
	h.does("PATCH", "/acme/main", `{"challenge":"dns-01","dns":{"provider":"cloudflare","credentials":{"api_token":"s3cret-token"}}}`, 200, "", "as: admin", always)
	_, out := h.does("GET", "/acme/main", "", 200, "", "as: viewer")
	dns, _ := out["dns"].(map[string]any)
	credentials, _ := dns["credentials"].(map[string]any)
	if credentials["api_token"] != masked || dns["credentials_set"] != true {
		t.Errorf("shown as %v", dns)
	}
	for _, path := range []string{"/acme", "/acme/main", "/revisions/1/diff/current", "/audit"} {
		if _, out := h.does("GET", path, "", 200, "", "as: admin"); strings.Contains(fmt.Sprint(out), "s3cret") {
			t.Errorf("GET %s tells a credential: %v", path, out)
		}
	}

	stays := func(method, path string, body any) {
		t.Helper()
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		h.does(method, path, string(data), 200, "", "as: editor", always)
		if text := h.text(); !strings.Contains(text, "s3cret-token") || strings.Contains(text, masked) {
			t.Errorf("%s %s %s: the document is\n%s", method, path, data, text)
		}
	}
	edit := func(path string, value any) any {
		return map[string]any{"edits": []any{map[string]any{"op": "set", "path": path, "value": value}}}
	}
	delete(out, "description")
	stays("PUT", "/acme/main", out)
	stays("PATCH", "/acme/main", map[string]any{"dns": map[string]any{"propagation": "5m", "credentials": credentials}})
	stays("POST", "/config/edits", edit("acme.main.dns.credentials.api_token", masked))
	stays("POST", "/config/edits", edit("acme.main.dns.credentials", credentials))
	stays("POST", "/config/edits", edit("acme.main.dns", map[string]any{"provider": "cloudflare", "propagation": "6m", "credentials": credentials}))
	stays("POST", "/config/edits", edit("acme", map[string]any{"main": map[string]any{"challenge": "dns-01", "dns": map[string]any{"provider": "cloudflare", "credentials": credentials}}}))
	h.does("POST", "/config/edits", `{"edits":[{"op":"set","path":"acme.main.dns.credentials.other","value":"\u002a*******"}]}`, 400, "invalid", "as: editor", always)
	h.does("PATCH", "/acme/main", `{"dns":{"credentials":{"other":"********"}}}`, 400, "invalid", "as: editor", always)
}

// TestSchemasMarkSecrets holds that a program knows from both schemas which fields are
// secret: they are writeOnly.
func TestSchemasMarkSecrets(t *testing.T) {
	type object struct {
		Properties map[string]struct {
			WriteOnly bool `json:"writeOnly"`
		} `json:"properties"`
	}
	var forEditors struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	var forPrograms struct {
		Components struct {
			Schemas map[string]object `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(config.JSONSchema()), &forEditors); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(openAPIDocument(), &forPrograms); err != nil {
		t.Fatal(err)
	}
	secrets := 0
	check := func(where string, o *schema.Object, shown object, ok bool) {
		for _, f := range o.Fields {
			if f.Secret {
				secrets++
			}
			if p, there := shown.Properties[f.Name]; ok && (!there || p.WriteOnly != f.Secret) {
				t.Errorf("%s: %s.%s: there %v, writeOnly %v, secret %v", where, o.Name(), f.Name, there, p.WriteOnly, f.Secret)
			}
		}
		if !ok {
			t.Errorf("%s: there is no %s", where, o.Name())
		}
	}
	for i, o := range config.Describe().Objects() {
		if i > 0 {
			shown, ok := forEditors.Defs[o.Name()]
			check("the JSON schema", o, shown, ok)
		}
	}
	for _, k := range config.Kinds() {
		for _, o := range k.Schema().Objects() {
			shown, ok := forPrograms.Components.Schemas[o.Name()]
			check("the OpenAPI document", o, shown, ok)
		}
	}
	if secrets < 12 {
		t.Errorf("only %d secret fields were seen", secrets)
	}
}

// TestSecretsOfHeaderRulesAreShownToNobody sets header rules with secrets: by the name of
// the field, and by secret: true. The mask written back leaves them.
func TestSecretsOfHeaderRulesAreShownToNobody(t *testing.T) {
	h := start(t)
	h.does("PATCH", "/proxies/main", `{"headers":[
		{"direction":"request","name":"Authorization","value":"Bearer s3cret-1"},
		{"direction":"request","operation":"append","name":"X-Api-Key","value":"s3cret-2"},
		{"direction":"request","operation":"append","name":"X-Api-Key","value":"s3cret-3"},
		{"direction":"request","name":"X-Other","value":"s3cret-4","secret":true},
		{"direction":"request","name":"X-Auth-User","value":"{user}"},
		{"direction":"response","name":"X-Plain","value":"plain"}]}`, 200, "", "as: admin", always)
	_, out := h.does("GET", "/proxies/main", "", 200, "", "as: viewer")
	list, _ := out["headers"].([]any)
	for i, want := range []string{masked, masked, masked, masked, "{user}", "plain"} {
		rule, _ := list[i].(map[string]any)
		if rule["value"] != want || (rule["value_set"] == true) != (want == masked) {
			t.Errorf("rule %d is shown as %v, want the value %s", i, rule, want)
		}
	}
	h.does("PATCH", "/proxies/main", `{"headers":[
		{"direction":"request","name":"Authorization","value":"Bearer s3cret-5"},
		{"direction":"request","operation":"append","name":"X-Api-Key","value":"********"},
		{"direction":"request","operation":"append","name":"X-Api-Key","value":"********"},
		{"direction":"request","name":"X-Other","value":"********","secret":true}]}`, 200, "", "as: editor", always)
	if text := h.text(); strings.Contains(text, masked) || strings.Index(text, "s3cret-2") > strings.Index(text, "s3cret-3") || !strings.Contains(text, "s3cret-4") {
		t.Errorf("the document is\n%s", text)
	}
	// Which of two secrets of one name stays cannot be known.
	h.does("PATCH", "/proxies/main", `{"headers":[{"direction":"request","operation":"append","name":"X-Api-Key","value":"********"}]}`, 400, "invalid", "as: editor", always)
	for _, path := range []string{"/proxies", "/proxies/main", "/revisions", "/revisions/2/diff/current", "/revisions/1/diff/current", "/audit"} {
		if _, out := h.does("GET", path, "", 200, "", "as: admin"); strings.Contains(fmt.Sprint(out), "s3cret") {
			t.Errorf("GET %s tells a secret: %v", path, out)
		}
	}
}
