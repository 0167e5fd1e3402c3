package config

import (
	_ "embed"
	"reflect"
	"sync"

	"headgate/internal/schema"
)

// Problem is one thing an operator has to mend in a configuration.
type Problem = schema.Problem

// descriptions describes the types of this package.
type descriptions struct {
	config, port, proxy, route, server, features, streamFeatures *schema.Object
}

// model returns the descriptions, which are made once.
var model = sync.OnceValue(func() *descriptions {
	d := &descriptions{
		config:   schema.Describe(reflect.TypeFor[Config]()),
		features: schema.Describe(reflect.TypeFor[Features]()), streamFeatures: schema.Describe(reflect.TypeFor[StreamFeatures]()),
	}
	for _, o := range d.config.Objects() {
		switch o.Go {
		case reflect.TypeFor[Port]():
			d.port = o
		case reflect.TypeFor[Proxy]():
			d.proxy = o
		case reflect.TypeFor[Route]():
			d.route = o
		case reflect.TypeFor[Server]():
			d.server = o
		}
	}
	return d
})

// Describe returns the description of a whole configuration.
func Describe() *schema.Object { return model().config }

// New returns a configuration with every default and without objects.
func New() *Config {
	c := &Config{}
	model().config.Fill(reflect.ValueOf(c).Elem())
	c.Version = 1
	return c
}

// NewRoute returns a route with every default; it lacks what answers there.
func NewRoute() *Route {
	r := &Route{}
	model().route.Fill(reflect.ValueOf(r).Elem())
	return r
}

//go:generate go run ./gen -root ../..
//go:embed schema.json.gz
var packedSchema []byte

var jsonSchema = sync.OnceValue(func() string { return string(schema.Unpack(packedSchema)) })

// JSONSchema returns the JSON Schema of a configuration (draft 2020-12), which
// editors read. It is generated from this package; schema.json is the same for readers.
func JSONSchema() string { return jsonSchema() }
