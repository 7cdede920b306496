// Command notes keeps short notes in memory for other programs.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// store holds notes by their ids, of which none is given twice.
type store struct {
	mu    sync.Mutex
	last  int
	notes map[string]string
}

func (s *store) add(w http.ResponseWriter, r *http.Request) {
	var in struct{ Text string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Text == "" {
		answer(w, http.StatusBadRequest, map[string]string{"error": "a note is an object with a text"})
		return
	}
	s.mu.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	s.notes[id] = in.Text
	s.mu.Unlock()
	answer(w, http.StatusCreated, map[string]string{"id": id})
}

func (s *store) get(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	s.mu.Lock()
	text, ok := s.notes[id]
	s.mu.Unlock()
	if !ok {
		unknown(w)
		return
	}
	answer(w, http.StatusOK, map[string]string{"id": id, "text": text})
}

func (s *store) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	_, ok := s.notes[r.PathValue("id")]
	delete(s.notes, r.PathValue("id"))
	s.mu.Unlock()
	if !ok {
		unknown(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func health(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

func unknown(w http.ResponseWriter) {
	answer(w, http.StatusNotFound, map[string]string{"error": "there is no such note"})
}

func answer(w http.ResponseWriter, code int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Print(err)
	}
}

func main() {
	s := &store{notes: map[string]string{}}
	http.HandleFunc("GET /health", health)
	http.HandleFunc("POST /notes", s.add)
	http.HandleFunc("GET /notes/{id}", s.get)
	http.HandleFunc("DELETE /notes/{id}", s.remove)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
