package mlflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/regular"
)

// Signature has the inputs and outputs of a model.
type Signature struct{ Inputs, Outputs []Tensor }

// Tensor is an input or output. Type is as NumPy's, like "float32". A dimension of any length, like the batch's, is -1.
type Tensor struct {
	Name, Type string
	Dims       []int
}

// SaveModel saves a model as model.safetensors ([flaxlike.Model.Save]). The signature is that of the last batch that
// built the network.
func SaveModel(m *flaxlike.Model) func(dir string) (Signature, error) {
	return func(dir string) (Signature, error) {
		var s Signature
		for _, in := range m.Describe().Inputs {
			s.Inputs = append(s.Inputs, Tensor{in.Name, in.Type, append([]int{-1}, in.Dims...)})
		}
		for _, l := range outputsOf(m.Summary().Layers) {
			dims := slices.Clone(l.Output.Dimensions)
			if len(dims) > 0 {
				dims[0] = -1
			}
			s.Outputs = append(s.Outputs, Tensor{l.Name, strings.ToLower(l.Output.DType.String()), dims})
		}
		return s, m.Save(filepath.Join(dir, "model.safetensors"))
	}
}

func outputsOf(layers []flaxlike.LayerRow) (outputs []flaxlike.LayerRow) {
	var last flaxlike.LayerRow
	for _, l := range layers {
		switch {
		case l.Kind == "output":
			outputs = append(outputs, l)
		case l.Kind == "variables" || last.Kind != "" && (last.Name == "" || strings.HasPrefix(l.Name, last.Name+"/")):
		default:
			last = l
		}
	}
	if last.Kind == "" || outputs != nil {
		return outputs
	}
	last.Name = "output"
	return []flaxlike.LayerRow{last}
}

// types are NumPy's.
var types = []string{"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}

func spec(tensors []Tensor) (any, error) {
	if len(tensors) == 0 {
		return nil, nil
	}
	list := make([]map[string]any, len(tensors))
	for i, t := range tensors {
		if !slices.Contains(types, t.Type) {
			return nil, nil
		}
		list[i] = map[string]any{"type": "tensor", "tensor-spec": map[string]any{"dtype": t.Type, "shape": t.Dims}}
		if t.Name != "" {
			list[i]["name"] = t.Name
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

const modelFolder = "model"

func (c *client) model(ctx context.Context, of *run, save func(dir string) (Signature, error)) (err error) {
	dir, err := os.MkdirTemp("", "lazo-mlflow-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, modelFolder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s, err := save(dir)
	if err != nil {
		return fmt.Errorf("save the model: %w", err)
	}
	inputs, err := spec(s.Inputs)
	if err != nil {
		return err
	}
	outputs, err := spec(s.Outputs)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	about := map[string]any{
		"artifact_path": modelFolder, "run_id": of.id, "model_uuid": token() + token(), "utc_time_created": time.Now().UTC().Format("2006-01-02 15:04:05.000000"),
		"flavors": map[string]any{"lazo": map[string]any{"files": names}},
	}
	if inputs != nil || outputs != nil {
		about["signature"] = map[string]any{"inputs": inputs, "outputs": outputs, "params": nil}
	}
	text, err := json.MarshalIndent(about, "", "  ") // JSON is YAML
	if err != nil {
		return err
	}
	if err := regular.Write(filepath.Join(dir, "MLmodel"), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := c.artifact(ctx, of, dir); err != nil {
		return err
	}
	return c.post(ctx, "runs/log-model", map[string]string{"run_id": of.id, "model_json": string(text)}, nil)
}

func (c *client) artifact(ctx context.Context, of *run, local string) error {
	put, err := c.store(of)
	if err != nil {
		return err
	}
	local = filepath.Clean(local)
	return filepath.WalkDir(local, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(local), file)
		if err != nil {
			return err
		}
		in, err := regular.Open(file, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer in.Close()
		return put(ctx, filepath.ToSlash(name), in)
	})
}

func (c *client) store(of *run) (func(ctx context.Context, name string, in *os.File) error, error) {
	u, err := url.Parse(of.artifacts)
	if err != nil {
		return nil, fmt.Errorf("%s: the run's artifact_uri is not an address", c.host)
	}
	switch {
	case u.Scheme == "mlflow-artifacts":
		return func(ctx context.Context, name string, in *os.File) error {
			info, err := in.Stat()
			if err != nil {
				return err
			}
			at := path.Join("api/2.0/mlflow-artifacts/artifacts", u.Path, name)
			var body io.Reader = in
			if info.Size() == 0 {
				body = http.NoBody
			}
			_, err = c.do(ctx, http.MethodPut, at, nil, http.Header{"Content-Type": {"application/octet-stream"}}, body, info.Size())
			return err
		}, nil
	case (u.Scheme == "file" || u.Scheme == "") && filepath.IsAbs(u.Path) && c.isHere() && strings.Contains(u.Path, "/"+of.id+"/"):
		return func(_ context.Context, name string, in *os.File) error {
			to := filepath.Join(u.Path, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			out, err := regular.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if err != nil {
				return err
			}
			_, err = io.Copy(out, in)
			return errors.Join(err, out.Close())
		}, nil
	}
	return nil, fmt.Errorf("%s: it stores artifacts at %s:…, which only a server on this machine or one with --serve-artifacts can take", c.host, cmp.Or(u.Scheme, "a relative path"))
}

func (c *client) isHere() bool {
	host := c.base.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
