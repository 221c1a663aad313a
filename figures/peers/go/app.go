// A small web application with Go's net/http, as in figures/src/child/app.rs.
//
// usage: app PORT
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

type object struct {
	Message string `json:"message"`
	Number  int    `json:"number"`
}

func text(w http.ResponseWriter, content string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.Write([]byte(content))
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		content, err := json.Marshal(object{"Hello, World!", 42})
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content)
	})
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		var numbers []uint64
		if r.Method != "POST" || json.NewDecoder(r.Body).Decode(&numbers) != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		var sum uint64
		for _, number := range numbers {
			sum += number
		}
		text(w, strconv.FormatUint(sum, 10))
	})
	mux.HandleFunc("/users/", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseUint(strings.TrimPrefix(r.URL.Path, "/users/"), 10, 64)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		text(w, fmt.Sprintf("user %d", id))
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], mux))
}
