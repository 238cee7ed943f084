package core

import (
	"reflect"
	"time"
)

// Storage is what is known of the state folder.
type Storage struct {
	Disk      Durable // what the disk is known to hold; what it should hold is durable
	SavedAt   time.Duration
	SaveError string
	SaveRetry time.Duration
}

// lacks reports whether something that is durable must be written now.
func (st *Storage) lacks(d Durable) bool {
	return !reflect.DeepEqual(significant(d), significant(st.Disk))
}

func (st *Storage) saveBlocked(now time.Duration) bool { return now < st.SaveRetry }
