package pjrt

// #include "run.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// Types of PJRT's named values.
const (
	valueString = iota
	valueInt64
	valueInt64s
	valueFloat
	valueBool
)

func goValues(list *C.lazo_NamedValue, size C.size_t) (map[string]any, error) {
	values := map[string]any{}
	for _, v := range unsafe.Slice(list, int(size)) {
		at := unsafe.Pointer(&v.int64_value)
		var value any
		switch v._type {
		case valueString:
			value = goString(*(**C.char)(at), v.value_size)
		case valueInt64:
			value = int64(v.int64_value)
		case valueInt64s:
			value = append([]int64{}, unsafe.Slice(*(**int64)(at), int(v.value_size))...)
		case valueFloat:
			value = *(*float32)(at)
		case valueBool:
			value = *(*bool)(at)
		default:
			return nil, fmt.Errorf("pjrt: the plugin's value %q has type %d, expected 0 to 4", goString(v.name, v.name_size), int(v._type))
		}
		values[goString(v.name, v.name_size)] = value
	}
	return values, nil
}

func cValues(values map[string]any, pin *runtime.Pinner) ([]C.lazo_NamedValue, error) {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]C.lazo_NamedValue, len(names))
	for i, name := range names {
		v := &list[i]
		v.struct_size = C.sizeof_lazo_NamedValue
		v.name, v.name_size = pinned(unsafe.StringData(name), len(name), pin)
		v.value_size = 1
		at := unsafe.Pointer(&v.int64_value)
		switch value := values[name].(type) {
		case string:
			v._type = valueString
			*(**C.char)(at), v.value_size = pinned(unsafe.StringData(value), len(value), pin)
		case int64:
			v._type, v.int64_value = valueInt64, C.int64_t(value)
		case []int64:
			v._type = valueInt64s
			data, _ := pinned(unsafe.SliceData(value), len(value), pin)
			*(**C.char)(at), v.value_size = data, C.size_t(len(value))
		case float32:
			v._type = valueFloat
			*(*float32)(at) = value
		case bool:
			v._type = valueBool
			*(*bool)(at) = value
		default:
			return nil, fmt.Errorf("pjrt: option %q has type %T, expected string, int64, []int64, float32 or bool", name, value)
		}
	}
	if len(list) > 0 {
		pin.Pin(&list[0])
	}
	return list, nil
}

// pinned pins n elements for C. Empty memory is null.
func pinned[T any](data *T, n int, pin *runtime.Pinner) (*C.char, C.size_t) {
	if n == 0 {
		return nil, 0
	}
	pin.Pin(data)
	return (*C.char)(unsafe.Pointer(data)), C.size_t(n)
}
