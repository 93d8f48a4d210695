-- How many customers are there?
SELECT count(*) FROM Customer
-- How many customers are there in each country, most first?
SELECT Country, count(*) AS n FROM Customer GROUP BY Country ORDER BY n DESC, Country
-- Which five artists have the most albums?
SELECT a.Name, count(*) AS albums FROM Artist a JOIN Album b ON b.ArtistId = a.ArtistId GROUP BY a.ArtistId ORDER BY albums DESC, a.Name LIMIT 5
-- What is the total revenue?
SELECT round(sum(Total), 2) FROM Invoice
-- What was the revenue in each year?
SELECT strftime('%Y', InvoiceDate) AS year, round(sum(Total), 2) AS revenue FROM Invoice GROUP BY year ORDER BY year
-- Which genre has the most tracks?
SELECT g.Name, count(*) AS n FROM Genre g JOIN Track t USING (GenreId) GROUP BY g.Name ORDER BY n DESC LIMIT 1
-- Who are the three customers who spent most?
SELECT c.FirstName || ' ' || c.LastName AS customer, round(sum(i.Total), 2) AS spent FROM Customer c JOIN Invoice i ON i.CustomerId = c.CustomerId GROUP BY c.CustomerId ORDER BY spent DESC, customer LIMIT 3
-- How long is the longest track, in minutes?
SELECT Name, round(Milliseconds / 60000.0, 1) AS minutes FROM Track ORDER BY Milliseconds DESC LIMIT 1
-- Which employees report to whom?
SELECT e.FirstName || ' ' || e.LastName AS employee, m.LastName AS manager FROM Employee e LEFT JOIN Employee m ON m.EmployeeId = e.ReportsTo ORDER BY e.EmployeeId
-- How many customers does each support representative have?
SELECT e.LastName, count(c.CustomerId) AS n FROM Employee e JOIN Customer c ON c.SupportRepId = e.EmployeeId GROUP BY e.EmployeeId ORDER BY n DESC
-- Which playlists have no tracks?
SELECT Name FROM Playlist p WHERE NOT EXISTS (SELECT 1 FROM PlaylistTrack t WHERE t.PlaylistId = p.PlaylistId)
-- What is the average price of a track?
SELECT round(avg(UnitPrice), 3) FROM Track
-- How many tracks have no composer?
SELECT count(*) FROM Track WHERE Composer IS NULL
-- Which media types are there and how many tracks has each?
SELECT m.Name, count(t.TrackId) FROM MediaType m LEFT JOIN Track t ON t.MediaTypeId = m.MediaTypeId GROUP BY m.MediaTypeId ORDER BY 2 DESC
-- Which albums have more than 25 tracks?
SELECT b.Title, count(*) AS n FROM Album b JOIN Track t ON t.AlbumId = b.AlbumId GROUP BY b.AlbumId HAVING count(*) > 25 ORDER BY n DESC
-- Which customers live in Brazil?
SELECT FirstName, LastName, City FROM Customer WHERE Country = 'Brazil' ORDER BY LastName
-- How many invoices were there in the first quarter of 2022?
SELECT count(*) FROM Invoice WHERE InvoiceDate >= '2022-01-01' AND InvoiceDate < '2022-04-01'
-- What did the average invoice come to in each country with at least ten invoices?
SELECT BillingCountry, round(avg(Total), 2) FROM Invoice GROUP BY BillingCountry HAVING count(*) >= 10 ORDER BY 2 DESC, 1
-- Which track was bought most often?
SELECT t.Name, sum(l.Quantity) AS n FROM InvoiceLine l JOIN Track t ON t.TrackId = l.TrackId GROUP BY t.TrackId ORDER BY n DESC, t.Name LIMIT 1
-- How much did each genre sell?
SELECT g.Name, round(sum(l.UnitPrice * l.Quantity), 2) AS sold FROM InvoiceLine l JOIN Track t ON t.TrackId = l.TrackId JOIN Genre g ON g.GenreId = t.GenreId GROUP BY g.GenreId ORDER BY sold DESC
-- Which artists have the word Black in their name?
SELECT Name FROM Artist WHERE Name LIKE '%Black%' ORDER BY Name
-- How many artists have no album?
SELECT count(*) FROM Artist WHERE ArtistId NOT IN (SELECT ArtistId FROM Album)
-- Who is the best customer of each country that has more than two?
WITH spent AS (SELECT c.CustomerId, c.Country, c.LastName, sum(i.Total) AS total FROM Customer c JOIN Invoice i USING (CustomerId) GROUP BY c.CustomerId), ranked AS (SELECT Country, LastName, total, rank() OVER (PARTITION BY Country ORDER BY total DESC, LastName) AS place, count(*) OVER (PARTITION BY Country) AS n FROM spent) SELECT Country, LastName, round(total, 2) FROM ranked WHERE place = 1 AND n > 2 ORDER BY Country
-- What is the running total of revenue by month in 2022?
SELECT month, round(sum(revenue) OVER (ORDER BY month), 2) FROM (SELECT strftime('%m', InvoiceDate) AS month, sum(Total) AS revenue FROM Invoice WHERE strftime('%Y', InvoiceDate) = '2022' GROUP BY month) ORDER BY month
-- How many tracks are shorter than two, from two to five, and longer than five minutes?
SELECT CASE WHEN Milliseconds < 120000 THEN 'short' WHEN Milliseconds <= 300000 THEN 'middle' ELSE 'long' END AS kind, count(*) FROM Track GROUP BY kind ORDER BY kind
-- Which customers have a company?
SELECT LastName, Company FROM Customer WHERE Company IS NOT NULL ORDER BY LastName
-- From which cities come both customers and employees?
SELECT City FROM Customer INTERSECT SELECT City FROM Employee
-- Which employees were hired after 2003-01-01?
SELECT LastName, date(HireDate) FROM Employee WHERE HireDate > '2003-01-01' ORDER BY HireDate, LastName
-- How many different billing countries are there?
SELECT count(DISTINCT BillingCountry) FROM Invoice
-- Which tracks are on the album Let There Be Rock?
SELECT t.Name FROM Track t JOIN Album b ON b.AlbumId = t.AlbumId WHERE b.Title = 'Let There Be Rock' ORDER BY t.TrackId
