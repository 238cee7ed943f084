package forecast

import (
	"encoding/json"
	"fmt"
	"io"
)

// EachItem reads a list as JSON, and holds one item at a time: decode is given the decoder before each of them, and decodes it. A list that
// was cut off is an error, and so is one with too many items.
func EachItem(text io.Reader, decode func(*json.Decoder) error) error {
	decoder := json.NewDecoder(text)
	if _, err := enterItems(decoder); err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	for items := 0; decoder.More(); items++ {
		if items == mostItems {
			return fmt.Errorf("a list has more than %d items", mostItems)
		}
		if err := decode(decoder); err != nil {
			return fmt.Errorf("reading a list, after %d items: %w", items, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("reading a list to its end: %w", err)
	}
	return nil
}

// mostItems bounds a list of pods, those that have ended among them.
const mostItems = 20_000
