package api

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/translate"
	"headgate/internal/schema"
	"headgate/internal/server/safedial"
)

// importRows is the row of the import.
func (a *API) importRows() []row {
	return []row{{method: http.MethodPost, path: "/import", access: admin, area: areaCutover, in: of[importInput](), out: of[importBody](), maxBody: maxSource, dry: true, handle: withBody(a.importSource),
		about: "Translates the configuration of another proxy. Nothing is saved or applied."}}
}

// maxSource bounds the body with the files of a source.
const maxSource = 48 << 20

// importInput is the configuration of another proxy.
type importInput struct {
	// Source is the proxy that the configuration is for, such as nginx.
	Source string `json:"source" required:"true" max:"32"`
	// Files are the configuration's files, including the files that it includes, under the
	// names that it refers to them with. No other file is read.
	Files []importedFile `json:"files,omitempty" max:"2000"`
	// Address is the address of the proxy's API instead, such as http://127.0.0.1:81 for
	// npm.
	Address string `json:"address,omitempty" max:"2048"`
	// Token is what the proxy at the address wants to see.
	Token string `json:"token,omitempty" writeonly:"true" max:"16384"`
	// Ports replaces port numbers, such as 80=8080, so that headgate can run beside the
	// other proxy.
	Ports []string `json:"ports,omitempty" max:"100"`
}

// importedFile is one file of a source.
type importedFile struct {
	// Name is its name.
	Name string `json:"name" required:"true" max:"4096"`
	// Included means that the file is only read if another one includes it.
	Included bool `json:"included,omitempty"`
	// Text is its content.
	Text string `json:"text,omitempty" max:"33554432"`
	// Data is its content in base64, for binary files.
	Data string `json:"data,omitempty" max:"41943040"`
}

// importBody is what a source became.
type importBody struct {
	// Document is the configuration of headgate.
	Document string `json:"document"`
	// Report lists every directive of the source and how it was translated.
	Report *importer.Report `json:"report"`
	// Problems are why the document is not valid yet; complete it by hand.
	Problems []schema.Problem `json:"problems"`
	// Files are certificates and keys in the source, under the names that the document
	// refers to them with. Save them next to it.
	Files []importedFile `json:"files"`
}

// importSource translates what the body holds.
func (a *API) importSource(c *call, in *importInput) (any, error) {
	numbers, err := translate.ParsePorts(in.Ports)
	if err != nil {
		return nil, refuse("invalid", "/ports", err.Error(), "")
	}
	s := translate.Source{Kind: in.Source, Token: in.Token, Ports: numbers}
	if in.Address != "" {
		s.Names = []string{in.Address}
	}
	files := map[string][]byte{}
	for i, f := range in.Files {
		data, err := f.bytes()
		if _, twice := files[f.Name]; err != nil || twice || translate.IsAddress(f.Name) {
			return nil, refuse("invalid", fmt.Sprintf("/files/%d", i), "the file is there twice, has an address for its name, has text and data, or its data is not in base64", "")
		}
		files[f.Name] = data
		if !f.Included {
			s.Names = append(s.Names, f.Name)
		}
	}
	s.Files = importer.Given(files)
	result, err := translate.Run(c.rq.Context(), s)
	if misuse := (*translate.Misuse)(nil); errors.As(err, &misuse) {
		return nil, refuse("invalid", "/source", err.Error(), "")
	}
	if errors.Is(err, safedial.ErrRefused) {
		return nil, refuse("invalid", "/address", err.Error(), "")
	}
	if err != nil {
		return nil, refuse("invalid", "/files", err.Error(), "")
	}
	b := importBody{Document: string(result.Document), Report: result.Report, Problems: result.Problems, Files: []importedFile{}}
	if b.Problems == nil {
		b.Problems = []schema.Problem{}
	}
	for _, name := range slices.Sorted(maps.Keys(result.Report.Files)) {
		b.Files = append(b.Files, importedFile{Name: name, Data: base64.StdEncoding.EncodeToString(result.Report.Files[name])})
	}
	return b, nil
}

func (f *importedFile) bytes() ([]byte, error) {
	if f.Data == "" {
		return []byte(f.Text), nil
	}
	if f.Text != "" {
		return nil, errors.New("text and data")
	}
	return base64.StdEncoding.DecodeString(f.Data)
}
