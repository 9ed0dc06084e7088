// Package planned hands the step of a program from the process that builds it to the one that plans it: lazo plan runs
// a program with [Variable] set, package xla writes the program's first training step into the file that it names, and
// the run ends.
package planned

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/internal/regular"
)

// Variable of the environment holds an [Order] as JSON.
const Variable = "LAZO_PLAN"

// Order says which machine a program is to be built for, and where its step is to be written.
type Order struct {
	Plugin   string `json:"plugin"` // name or path
	Topology string `json:"topology"`
	Root     string `json:"root"` // of the installed plugins, "" for the default
	File     string `json:"file"`
}

// Step is a training step as it was lowered.
type Step struct {
	Name   string         `json:"name"`
	Text   string         `json:"text"`   // StableHLO
	Batch  []int          `json:"batch"`  // places of the inputs that each step is given
	Inputs []string       `json:"inputs"` // their names
	Where  map[int]string `json:"where"`  // lines of the user's code, by lines of the text
}

// ParseOrder reads the variable's value.
func ParseOrder(value string) (Order, error) {
	var o Order
	err := json.Unmarshal([]byte(value), &o)
	if err == nil && (o.Plugin == "" || o.Topology == "" || o.File == "") {
		err = errors.New("plugin, topology or file is missing")
	}
	if err != nil {
		return Order{}, fmt.Errorf("%s=%.200q: expected what lazo plan sets: %w", Variable, value, err)
	}
	return o, nil
}

// Environment is the order as an entry of an environment.
func (o Order) Environment() (string, error) {
	text, err := json.Marshal(o)
	return Variable + "=" + string(text), err
}

// Write writes a step, whole or not at all.
func (s Step) Write(file string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := regular.Write(file+".part", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// limit is how long a file may be.
const limit = 2 << 30

// Read reads what Write wrote.
func Read(file string) (Step, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Step{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return Step{}, fmt.Errorf("%s is no file of at most %d bytes", file, limit)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Step{}, err
	}
	var s Step
	return s, json.Unmarshal(text, &s)
}
