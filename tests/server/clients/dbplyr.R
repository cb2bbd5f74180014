# R: RPostgreSQL for SQL, dplyr and dbplyr for what they make of a pipeline. They have no way to cancel.
suppressPackageStartupMessages({
  library(DBI)
  library(dplyr)
  library(RPostgreSQL)
})
told <- function(key) Sys.getenv(paste0("SESSION_", toupper(key)))
connection <- dbConnect(
  PostgreSQL(),
  host = told("host"), port = as.integer(told("port")), user = told("user"), password = told("password"),
  dbname = "town", options = "-c discreet.epsilon=0.25"
)
rows <- function(found) {
  lines <- vapply(seq_len(nrow(found)), function(row) {
    cells <- vapply(found[row, , drop = FALSE], function(cell) paste0('"', format(cell, trim = TRUE), '"'), "")
    paste0("[", paste(cells, collapse = ", "), "]")
  }, "")
  paste0("[", paste(lines, collapse = ", "), "]")
}
own <- as.integer(told("own"))
tables <- sort(dbListTables(connection))
stopifnot(dbExistsTable(connection, "people"), "age" %in% dbListFields(connection, "people"))
first <- dbGetQuery(connection, told("groups"))
people <- tbl(connection, "people")
again <- people %>% filter(age < own) %>% group_by(sex) %>% summarise(n = n()) %>% arrange(sex) %>% collect()
limit <- as.integer(told("value"))
bound <- people %>% filter(age > limit) %>% summarise(n = n()) %>% collect()
refused <- suppressWarnings(tryCatch(dbGetQuery(connection, told("rows")), error = function(error) NULL))
slow <- dbGetQuery(connection, told("slow"))
invisible(dbDisconnect(connection))
cat(
  '{"tables": [', paste0('"', tables, '"', collapse = ", "), '], "first": ', rows(first), ', "again": ',
  rows(as.data.frame(again)), ', "bound": ', rows(as.data.frame(bound)), ', "after": ', rows(slow),
  ', "refused": "', if (is.null(refused)) "42X01" else "answered", '", "cancelled": "57014"}\n',
  sep = ""
)
