package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/document"
	"github.com/lazo-ml/lazo/internal/listed"
)

// jsonSize is the header with the number of bytes of JSON before binary data.
const jsonSize = "Inference-Header-Content-Length"

func (h *Handler) body(w http.ResponseWriter, r *http.Request) (string, error) {
	if r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.options.Timeout)) // a test's writer has none
	}
	sent := http.MaxBytesReader(w, r.Body, h.options.MaxBody)
	rest := bufio.NewReader(sent)
	plain, err := io.Reader(rest), error(nil)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		plain, err = gzip.NewReader(rest)
	case "deflate":
		plain, err = zlib.NewReader(rest)
	default:
		return "", failed(http.StatusUnsupportedMediaType, "Content-Encoding is %s, expected gzip, deflate or identity", listed.Quoted(encoding))
	}
	var text bytes.Buffer
	if err == nil {
		text.Grow(int(min(max(r.ContentLength, 0), 1<<16)) + bytes.MinRead) // what it says may not come
		_, err = text.ReadFrom(io.LimitReader(plain, h.options.MaxBody+1))
	}
	if err == nil && int64(text.Len()) <= h.options.MaxBody { // what is not read here would be read without a deadline
		if _, more := rest.ReadByte(); more == nil {
			err = errors.New("there is more after the end of the compressed data")
		} else if more != io.EOF {
			err = more
		}
	}
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &large) || int64(text.Len()) > h.options.MaxBody:
		return "", failed(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", h.options.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", failed(http.StatusRequestTimeout, "the body was not sent within %v", h.options.Timeout)
	case err != nil:
		return "", failed(http.StatusBadRequest, "the body: %v", err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the wait for the client's end has none
	return text.String(), nil
}

type inference struct {
	of      *Batcher
	id      string
	inputs  []input
	fit     fitting
	outputs []wanted // none: all
	known   []Tensor // outputs; none: unknown
	binary  *bool    // of outputs that do not say it
}

type input struct {
	at     int
	name   string
	kind   kind
	shape  []int
	list   string
	binary *int // bytes
}

type wanted struct {
	name   string
	binary *bool
}

const (
	maxOutputs = 1000 // of models whose outputs are not known
	maxShape   = 500  // bytes
	maxID      = 256  // bytes
)

// parse refuses what the model does not take before any element is read.
func parse(text string, of *Batcher) (*inference, error) {
	d, err := document.New(text)
	if err != nil {
		return nil, err
	}
	q := &inference{of: of, fit: fitting{of: of}, known: of.Outputs()}
	err = d.Object("it", func(name string) (err error) {
		switch name {
		case "id":
			if q.id, err = document.Read[string](d, name, "a string"); err == nil && len(q.id) > maxID {
				err = fmt.Errorf("id has %d bytes, expected at most %d", len(q.id), maxID)
			}
		case "parameters":
			q.binary, err = readParameter[bool](d, "binary_data_output", "true or false")
		case "inputs":
			err = d.List(name, func() error { return q.input(d) })
		case "outputs":
			err = d.List(name, func() error { return q.output(d) })
		default: // of an extension
			_, _, err = d.Text()
		}
		return err
	})
	switch {
	case err == nil:
		err = d.End()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("unexpected end of the JSON")
	}
	if err == nil && len(q.inputs) == 0 {
		err = errors.New(`it has no inputs: expected {"inputs": [{"name": …, "datatype": …, "shape": […], "data": […]}]}`)
	}
	if err == nil {
		err = q.fit.complete()
	}
	return q, err
}

// One parameter is wanted; those that would mean another answer are refused.
func readParameter[T bool | int](d *document.Document, wanted, expected string) (found *T, err error) {
	err = d.Object("parameters", func(name string) (err error) {
		switch name {
		case wanted:
			found = new(T)
			*found, err = document.Read[T](d, name, expected)
		case "shared_memory_region", "classification":
			err = fmt.Errorf("the parameter %s is not supported", name)
		default:
			_, _, err = d.Text()
		}
		return err
	})
	return found, err
}

func (q *inference) input(d *document.Document) error {
	in, datatype := input{}, ""
	err := d.Object("an input", func(name string) (err error) {
		switch name {
		case "name":
			in.name, err = document.Read[string](d, name, "a string")
		case "datatype":
			datatype, err = document.Read[string](d, name, "a string")
		case "shape":
			in.shape, err = readShape(d)
		case "data":
			in.list, err = d.Elements(name)
		case "parameters":
			in.binary, err = readParameter[int](d, "binary_data_size", "a number of bytes")
		default:
			_, _, err = d.Text()
		}
		return err
	})
	if err != nil {
		return err
	}
	ok := false
	if in.kind, ok = kinds[datatype]; !ok {
		return fmt.Errorf("input %s: datatype %s, expected one of %s", listed.Quoted(in.name), listed.Quoted(datatype), known())
	}
	if in.at, err = q.fit.add(in.name, in.kind.dtype, in.shape); err != nil {
		return err
	}
	if (in.binary != nil) == (in.list != "") {
		return fmt.Errorf("input %q has data and binary_data_size, or neither: expected one of them", in.name)
	}
	q.inputs = append(q.inputs, in)
	return nil
}

func readShape(d *document.Document) (shape []int, err error) {
	text, _, err := d.Text()
	if err == nil && (len(text) > maxShape || text == "null" || json.Unmarshal([]byte(text), &shape) != nil) {
		err = fmt.Errorf("shape is %s, expected a list of whole numbers", listed.Quoted(text))
	}
	return shape, err
}

func (q *inference) output(d *document.Document) error {
	var o wanted
	err := d.Object("an output", func(name string) (err error) {
		switch name {
		case "name":
			o.name, err = document.Read[string](d, name, "a string")
		case "parameters":
			o.binary, err = readParameter[bool](d, "binary_data", "true or false")
		default:
			_, _, err = d.Text()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(q.known) > 0 && !slices.ContainsFunc(q.known, func(t Tensor) bool { return t.Name == o.name }):
		return noOutput(o.name, q.known)
	case slices.ContainsFunc(q.outputs, func(other wanted) bool { return other.name == o.name }):
		return fmt.Errorf("output %s appears twice", listed.Quoted(o.name))
	case len(q.outputs) == maxOutputs:
		return fmt.Errorf("there are more than %d outputs", maxOutputs)
	}
	q.outputs = append(q.outputs, o)
	return nil
}

func noOutput(name string, known []Tensor) error {
	names := make([]string, len(known))
	for i, t := range known {
		names[i] = t.Name
	}
	return fmt.Errorf("there is no output %s; there are %s", listed.Quoted(name), listed.Some(names))
}

// A request's binary data comes after its JSON.
func (q *inference) request(ctx context.Context, binary string) (*request, error) {
	r := &request{rows: q.fit.rows, answer: make(chan answer, 1), fields: make([]data.Array, len(q.of.inputs))}
	for _, in := range q.inputs {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		size := 1
		for _, n := range in.shape {
			size *= n
		}
		flat, err := any(nil), error(nil)
		switch {
		case in.binary == nil:
			flat, err = in.kind.list(in.list, in.shape, size)
		case *in.binary < 0 || *in.binary > len(binary) || in.kind.width > 0 && *in.binary != size*in.kind.width:
			err = fmt.Errorf("binary_data_size is %d, and %d bytes are left in the body: expected %d", *in.binary, len(binary), size*in.kind.width)
		default:
			flat, err = in.kind.binary(binary[:*in.binary], size)
			binary = binary[*in.binary:]
		}
		if err != nil {
			return nil, fmt.Errorf("%w: input %q: %w", ErrInput, in.name, err)
		}
		r.fields[in.at] = data.Array{Flat: flat, Dims: in.shape}
	}
	if binary != "" {
		return nil, fmt.Errorf("%w: the body has %d bytes of binary data more than its inputs", ErrInput, len(binary))
	}
	return r, nil
}

func split(body, header string) (text, binary string, err error) {
	if header == "" {
		return body, "", nil
	}
	n, err := strconv.Atoi(header)
	if err != nil || n < 0 || n > len(body) {
		return "", "", fmt.Errorf("the header %s is %s, expected a number of bytes up to %d, the size of the body", jsonSize, listed.Quoted(header), len(body))
	}
	return body[:n], body[n:], nil
}
