package tensorboard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	startInfo     = 3
	endInfo       = 4
	startInfoTag  = "_hparams_/session_start_info"
	endInfoTag    = "_hparams_/session_end_info"
	sessionWell   = 1
	sessionFailed = 2
)

func session(tag string, field protowire.Number, info message) message {
	return value(tag, "hparams", message{}.bytes(field, info), ofTensors, tensor(dtFloat, 0))
}

func sessionStart(parameters map[string]message, seconds float64) message {
	var info message
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		info = info.bytes(1, message{}.text(1, name).bytes(2, parameters[name]))
	}
	return session(startInfoTag, startInfo, info.float(5, seconds))
}

func sessionEnd(well bool, seconds float64) message {
	status := int64(sessionFailed)
	if well {
		status = sessionWell
	}
	return session(endInfoTag, endInfo, message{}.integer(1, status).float(2, seconds))
}

func flatten(parameters map[string]any) (map[string]message, error) {
	flat := map[string]message{}
	for name, v := range parameters {
		if err := flattenInto(flat, escape(name), v); err != nil {
			return nil, err
		}
	}
	return flat, nil
}

func flattenInto(flat map[string]message, name string, v any) error {
	if _, twice := flat[name]; twice {
		return fmt.Errorf("hyperparameter %s comes twice", name)
	}
	if s, ok := v.(fmt.Stringer); ok {
		flat[name] = textValue(s.String())
		return nil
	}
	of := reflect.ValueOf(v)
	switch {
	case v == nil:
		flat[name] = textValue("")
	case of.Kind() == reflect.Bool:
		flat[name] = message{}.integer(4, map[bool]int64{true: 1}[of.Bool()])
	case of.CanInt():
		flat[name] = message{}.float(2, float64(of.Int()))
	case of.CanUint():
		flat[name] = message{}.float(2, float64(of.Uint()))
	case of.CanFloat():
		if !isFinite(of.Float()) { // sent as JSON
			flat[name] = textValue(strconv.FormatFloat(of.Float(), 'g', -1, 64))
			break
		}
		flat[name] = message{}.float(2, of.Float())
	case of.Kind() == reflect.String:
		flat[name] = textValue(of.String())
	case of.Kind() == reflect.Slice || of.Kind() == reflect.Array:
		for i := range of.Len() {
			if err := flattenInto(flat, fmt.Sprintf("%s.%d", name, i), of.Index(i).Interface()); err != nil {
				return err
			}
		}
	case of.Kind() == reflect.Map && of.Type().Key().Kind() == reflect.String:
		for _, key := range of.MapKeys() {
			if err := flattenInto(flat, name+"."+escape(key.String()), of.MapIndex(key).Interface()); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("hyperparameter %s: want a boolean, a number, a text, a list, a map with text keys or a value with a String method, got %T", name, v)
	}
	return nil
}

func textValue(s string) message { return message{}.bytes(3, utf8Text(s)) }
