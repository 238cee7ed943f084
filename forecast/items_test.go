package forecast

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// Each item is handed over once, and a list that is none, that was cut off or that has no end is an error.
func TestEachItem(t *testing.T) {
	const whole = `{"kind":"PodList","metadata":{},"items":[1,2,3],"more":4}`
	for name, row := range map[string]struct {
		text, want, fault string
	}{
		"three":                   {whole, "123", ""},
		"none":                    {`{"items":[]}`, "", ""},
		"as many as there can be": {`{"items":[` + strings.Repeat("1,", mostItems-1) + `1]}`, strings.Repeat("1", mostItems), ""},
		"too many":                {`{"items":[` + strings.Repeat("1,", mostItems) + `1]}`, strings.Repeat("1", mostItems), "a list has more than 20000 items"},
		"no text":                 {"", "", "it does not begin with an object: <nil>: EOF"},
		"a list alone":            {"[1]", "", "it does not begin with an object: [: it has no list of items"},
		"no items":                {`{"kind":"Status"}`, "", "it has no list of items"},
		"null":                    {`{"items":null}`, "", "its items are null"},
		"an object":               {`{"items":{}}`, "", "its items are {: it has no list of items"},
		"cut before the items":    {`{"kind":1`, "", "reading a list: "},
		"cut in a key":            {`{"ki`, "", "unexpected EOF"},
		"cut at the items":        {`{"items":`, "", "its items are <nil>: EOF"},
		"cut in an item":          {`{"items":[1,"x`, "1", "after 1 items: unexpected EOF"},
		"cut after an item":       {`{"items":[1,2`, "12", "reading a list to its end"},
		"refused":                 {`{"items":[1,7,3]}`, "17", "after 1 items: seven"},
	} {
		var all strings.Builder
		err := EachItem(strings.NewReader(row.text), func(d *json.Decoder) error {
			var item json.Number
			err := d.Decode(&item)
			if all.WriteString(string(item)); item == "7" {
				return errors.New("seven")
			}
			return err
		})
		got := all.String()
		if got != row.want || (err == nil) != (row.fault == "") || err != nil && !strings.Contains(err.Error(), row.fault) {
			t.Errorf("%s: %.20q, %v; want %.20q, %q", name, got, err, row.want, row.fault)
		}
	}
}

// What is wrong with a list of pods is told.
func TestListsOfPodsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		`{"items":null`:        "reading a list of no pods: <nil>: EOF",
		`{"items":null,"a":1}`: "reading a list of no pods: a: it has no list of items",
		`{"items":null]`:       "reading a list of no pods: <nil>: invalid character",
		`[]`:                   "reading a list of pods: it does not begin with an object: [: it has no list of items",
		``:                     "reading a list of pods: it does not begin with an object: <nil>: EOF",
		`{"a":1,`:              "reading a list of pods: ",
		`{"a":x}`:              "reading a list of pods: invalid character",
		`{1:2,"items":[]}`:     "reading a list of pods: invalid character '1'",
		`{"items":[{}`:         "reading a list of 1 pods: ",
		`{"items":[{},1]}`:     "reading a list, after 1 pods: ",
	} {
		if pods, err := ReadPods(strings.NewReader(text)); err == nil || pods != nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, pods, err, want)
		}
	}
}
